"""How often a text holds the usual separator of documents though it was not cut at it.

Most patterns cut `<|endoftext|>` into `<|`, `endoftext` and `|>`, so its middle is a pretoken of its own, without the
space that the word has in a text: its count is that of the separator, and the text need not be searched for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bpe.errors import UncoveredText
from bpe.tokenizer import END_OF_TEXT
from tokenmill.inputs import _core

if TYPE_CHECKING:
    from bpe.pretoken_counts.counts_facts import Arrays
    from bpe.pretokenizer import Pretokenizer

_SEPARATOR: Final = END_OF_TEXT.encode()
_MIDDLE: Final = END_OF_TEXT.strip("<|>").encode()


class UncutSeparators:
    """The separators in what is counted: `add_text` is given all of it, `add_counts` all counts."""

    def __init__(self, pretokenizer: Pretokenizer) -> None:
        self.found = 0
        self._counts_tell = _is_told_by_counts(pretokenizer)
        self._last = b""

    def begin_text(self) -> None:
        """What follows does not go on with the text before."""
        self._last = b""

    def add_text(self, text: memoryview) -> None:
        """A part of the text; the separator may lie across two of them."""
        if self._counts_tell:
            return
        border = self._last + bytes(text[: len(_SEPARATOR) - 1])
        self.found += border.count(_SEPARATOR) + len(_core.find_separators(text, _SEPARATOR))
        self._last = (self._last + bytes(text[-len(_SEPARATOR) + 1 :]))[-len(_SEPARATOR) + 1 :]

    def add_counts(self, arrays: Arrays) -> None:
        """Counts of pretokens, ascending."""
        if not self._counts_tell:
            return
        text, ends, counts = arrays
        stops = _core.find_separators(text.data, _MIDDLE) + np.uint64(len(_MIDDLE))
        places = np.searchsorted(ends, stops)
        for place, stop in zip(places.tolist(), stops.tolist(), strict=True):
            start = int(ends[place - 1]) if place else 0
            if int(ends[place]) == stop and start == stop - len(_MIDDLE):
                self.found += int(counts[place])


def _is_told_by_counts(pretokenizer: Pretokenizer) -> bool:
    middle = _MIDDLE.decode()
    try:
        return pretokenizer.pretokens(f"a {middle} a{END_OF_TEXT}a").count(middle) == 1
    except UncoveredText:
        return False


UNCUT_NOTE: Final = f"{END_OF_TEXT}: "  # start of the line


def uncut_note(times: int) -> str:
    """The line that tells of it."""
    return (
        f"{UNCUT_NOTE}occurs {times:,} times, counted as ordinary text. If it separates documents, pass "
        f"--special-token '{END_OF_TEXT}'."
    )
