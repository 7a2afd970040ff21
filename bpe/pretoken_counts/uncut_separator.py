"""How often a text holds the usual separator of documents though it was not cut at it, told from what was counted.

The named patterns cut `<|endoftext|>` into `<|`, `endoftext` and `|>`, so its middle is a pretoken of its own, without
the space that the word has in a text: its count is that of the separator, and the text need not be searched for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bpe import _core
from bpe.encoding import END_OF_TEXT

if TYPE_CHECKING:
    from bpe.pretoken_counts.counts_facts import Arrays

_MIDDLE: Final = END_OF_TEXT.strip("<|>").encode()


def separators_in(arrays: Arrays) -> int:
    """How often the separator was counted as ordinary text, in counts of one of the named patterns."""
    text, ends, counts = arrays
    stops = _core.find_separators(text.data, _MIDDLE) + np.uint64(len(_MIDDLE))
    places = np.searchsorted(ends, stops)
    for place, stop in zip(places.tolist(), stops.tolist(), strict=True):
        start = int(ends[place - 1]) if place else 0
        if int(ends[place]) == stop and start == stop - len(_MIDDLE):
            return int(counts[place])
    return 0


def uncut_note(times: int) -> str:
    """The line that tells of it."""
    return (
        f"the text holds {END_OF_TEXT} {times:,} times, counted as ordinary text; if it separates documents, make it a "
        f"special token: --special-token '{END_OF_TEXT}'"
    )
