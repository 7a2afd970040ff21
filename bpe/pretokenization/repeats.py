"""Characters of which it is known without a look at the state that they change nothing.

In text most characters are letters behind letters, which leave a state as it is. Where the classes of a few characters
tell that, the core leaves the character out before it goes from state to state. Classes come in groups:

- `WORD`: behind another of its kind, and if none of the `UNRULY` is among the bytes before (as the apostrophe of
  contractions, behind which letters are not alike);
- from `FIRST` on, each a class by itself: behind one of its kind; from `TWICE` on, behind two of its kind.

A byte within a character never changes a state, but for what is due.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

NONE: Final = 0
WORD: Final = 1
UNRULY: Final = 2
WITHIN: Final = 3
FIRST: Final = 4
TWICE: Final = 128
UNRULY_BYTES: Final = 16  # behind an unruly one, in which all is looked at; a character has up to four


def runs_of(then: NDArray[np.uint8], letter: int) -> NDArray[np.uint8]:
    """uint8[classes + 1], the group of each class. then: uint8[classes + 1, states]; letter: the class of "e".

    Every state is taken for possible, so what is said here holds for any text.
    """
    classes = len(then) - 1
    quiet = then[-1]  # of each state the one in which nothing is due
    groups = np.zeros(classes + 1, np.uint8)
    groups[-1] = WITHIN
    word, unruly = _word(then, letter)
    groups[word], groups[unruly] = WORD, UNRULY
    once, twice = FIRST, TWICE
    for number in range(classes):
        row = then[number]
        if groups[number]:
            continue
        if (row[row] == quiet[row]).all() and once < TWICE:
            groups[number], once = once, once + 1
        elif (row[row[row]] == quiet[row[row]]).all():
            groups[number], twice = twice, twice + 1
    return groups


def _word(then: NDArray[np.uint8], letter: int) -> tuple[list[int], list[int]]:
    """(the classes of words, the unruly ones), or nothing where more of them lie between than are looked at."""
    classes, quiet = len(then) - 1, then[-1]
    states = np.flatnonzero(np.bincount(quiet))  # np.unique imports numpy.ma
    homes = [state for state in states if then[letter, state] == state]  # in which letters change nothing
    is_home = np.bincount(homes, minlength=256) > 0
    word = [
        number
        for number in range(classes)
        if (then[number, homes] == homes).all() and is_home[quiet[then[number, states]]].mean() > 0.5
    ]
    if not homes:
        return [], []
    # States from which a letter does not lead to one of these. One comes there by an unruly character, and perhaps by
    # letters behind it.
    unlike = {int(s) for s in states if not set(quiet[then[word, s]].tolist()) <= set(homes)}
    others = [number for number in range(classes) if number not in word]
    unruly = [number for number in others if not unlike.isdisjoint(quiet[then[number, states]].tolist())]
    reached = {int(s) for number in unruly for s in quiet[then[number, states]]} & unlike
    characters = 1  # that may stand before two letters of which the second changes something
    while reached and characters * 4 <= UNRULY_BYTES:
        characters += 1
        reached = {int(s) for number in word for s in quiet[then[number, sorted(reached)]]} & unlike
    if reached:
        return [], []
    return word, unruly
