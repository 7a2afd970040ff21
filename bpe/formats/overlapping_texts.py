"""Whether texts of two kinds can overlap: one lies in the other, or one begins as the other ends.

By an automaton of the one kind (Aho and Corasick) that the other kind's texts are run through: a step a character. It
takes some memory for each character, so their number is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bpe.errors import UnsupportedTokenizer

# Ten times those of any known tokenizer.
MAX_CHARACTERS: Final = 1_000_000


def first_overlap(some: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    """(one of some, one of others) that can overlap, or None.

    ["<a>", "ab"], ["xa"] -> ("ab", "xa"). UnsupportedTokenizer for more than MAX_CHARACTERS in all; none is empty.
    """
    if not some or not others:
        return None
    if sum(map(len, some)) + sum(map(len, others)) > MAX_CHARACTERS:
        raise UnsupportedTokenizer(
            f"added_tokens have more than {MAX_CHARACTERS:,} characters and differ in normalized; supported: the same "
            "value for all of so many"
        )
    if found := _Beginnings(others).first_in(some):
        return found
    found = _Beginnings(some).first_in(others)
    return (found[1], found[0]) if found else None


class _Beginnings:
    """All beginnings of the texts, numbered by rising length; 0 is the empty one.

    _next: (beginning, character) -> beginning. _shorter: the longest other beginning that one ends with. _whole: the
    number of a text that one ends with, -1 for none. _begins: the number of a text that it begins.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._next: dict[tuple[int, str], int] = {}
        self._shorter, self._whole, self._begins = [0], [-1], [-1]
        ongoing = [(number, 0) for number in range(len(texts))]
        length = 1
        while ongoing:
            longer: list[tuple[int, int]] = []
            for number, beginning in ongoing:
                text = texts[number]
                made = self._with(beginning, text[length - 1], number)
                if len(text) == length:
                    self._whole[made] = number
                else:
                    longer.append((number, made))
            ongoing = longer
            length += 1

    def _with(self, beginning: int, character: str, number: int) -> int:
        known = self._next.get((beginning, character))
        if known is not None:
            return known
        shorter = self._step(self._shorter[beginning], character) if beginning else 0
        made = self._next[beginning, character] = len(self._begins)
        self._shorter.append(shorter)
        self._whole.append(self._whole[shorter])
        self._begins.append(number)
        return made

    def _step(self, beginning: int, character: str) -> int:
        """The longest beginning that the text ends with, if it ended with `beginning` before this character."""
        while (found := self._next.get((beginning, character))) is None and beginning:
            beginning = self._shorter[beginning]
        return found or 0

    def first_in(self, texts: Sequence[str]) -> tuple[str, str] | None:
        """(one of the given texts, the text that lies in it or begins as it ends), or None."""
        for text in texts:
            beginning = 0
            for character in text:
                beginning = self._step(beginning, character)
                if self._whole[beginning] >= 0:
                    return text, self._texts[self._whole[beginning]]
            if beginning:
                return text, self._texts[self._begins[beginning]]
        return None
