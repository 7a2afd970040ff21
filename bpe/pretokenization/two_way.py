"""Stages as an automaton that goes back over what it has read, for those that no bounded memory decides on the way.

Where numbers are cut in threes from their end, nothing is certain before the last digit is seen. So this automaton only
notes by *labels* which right contexts agree on all that was read: those of one label make the same of it. A state with
one label is *settled*: the starts before it are certain, whatever follows. They are found by going back from there:
`back` says for a state, a character and the right context behind it which right context there was before it, and
whether a piece starts there. That takes two passes over a text (a bimachine, after Schützenberger, "A remark on finite
transducers", 1961).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from bpe.pretokenization.classes import Classes
from bpe.pretokenization.ways import Walks, Ways, explored

MOST_STATES: Final = 256

_State = tuple[tuple[Walks, int, int], ...]  # walks, label and the set of right contexts, a bit each


class Before(NamedTuple):
    """Of the place before a character: its right context; whether a piece starts there, and is left out."""

    right: int
    starts: bool
    drops: bool


@dataclass(frozen=True)
class TwoWay:
    """State 0 is that at the start of a text. Behind a character of class c, state s becomes `then[s][c]`, and
    `back[s][c][right]` is the place before it. settled: by state, a right context to go back from, or None. labels: by
    state and right context. end: the right context where no character is left. rights: how many there are."""

    classes: Classes
    then: list[list[int]]
    back: list[list[dict[int, Before]]]
    settled: list[int | None]
    labels: list[dict[int, int]]
    end: int
    rights: int


def two_way_of(ways: Ways) -> TwoWay:
    """The automaton of stages, by the ways over characters; NotBoundedError where it is too large."""
    first: _State = ((ways.first, 0, ways.rights),)
    states, then, back = explored(
        first, ways.classes.examples, lambda state, character: _step(ways, state, character), MOST_STATES
    )
    labels = [{right: label for _, label, rights in state for right in _members(rights)} for state in states]
    settled = [next(iter(each)) if len(set(each.values())) == 1 else None for each in labels]
    return TwoWay(ways.classes, then, back, settled, labels, ways.end, ways.rights.bit_length())


def _step(ways: Ways, state: _State, character: int) -> tuple[_State, dict[int, Before]]:
    groups: dict[tuple[Walks, tuple[int, bool, bool]], int] = {}
    befores: dict[int, Before] = {}
    for walks, label, rights in state:
        for way in ways.over(walks, character):
            if not rights >> way.before & 1:
                continue
            key = (way.walks, (label, way.starts, way.drops))
            groups[key] = groups.get(key, 0) | way.rights
            befores |= dict.fromkeys(_members(way.rights), Before(way.before, way.starts, way.drops))
    numbers: dict[tuple[int, bool, bool], int] = {}
    following = tuple(
        (walks, numbers.setdefault(label, len(numbers)), rights)
        for (walks, label), rights in sorted(groups.items(), key=lambda item: item[1])
    )
    return following, befores


@lru_cache(maxsize=4096)  # of sets that come again and again
def _members(rights: int) -> list[int]:
    return [number for number in range(rights.bit_length()) if rights >> number & 1]
