"""A text whose characters know where in the original text they come from.

As `NormalizedString` of tokenizers: each character has a range of the original, and a change of the text gives each new
character the range of the character whose place it takes, or of the one before it where it is inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


class AlignedText:
    """text; starts, stops: for each character, [start, stop) in characters of the original."""

    __slots__ = ("starts", "stops", "text")

    def __init__(self, text: str, starts: Sequence[int], stops: Sequence[int]) -> None:
        self.text = text
        self.starts = starts
        self.stops = stops

    @staticmethod
    def original(text: str, place: int = 0) -> AlignedText:
        """The text as it is, which begins at this character."""
        return AlignedText(text, range(place, place + len(text)), range(place + 1, place + len(text) + 1))

    def __len__(self) -> int:
        return len(self.text)

    def __getitem__(self, part: slice) -> AlignedText:
        return AlignedText(self.text[part], self.starts[part], self.stops[part])

    def mapped(self, change: Callable[[str], str]) -> AlignedText:
        """Each character replaced by what `change` gives for it; "" takes it away."""
        parts = [change(character) for character in self.text]
        if all(len(part) == 1 for part in parts):
            return AlignedText("".join(parts), self.starts, self.stops)
        sources = [place for place, part in enumerate(parts) for _ in part]
        return self.taking("".join(parts), sources)

    def taking(self, text: str, sources: Iterable[int]) -> AlignedText:
        """Another text; sources: the character here that each of it comes from."""
        sources = list(sources)
        return AlignedText(text, [self.starts[at] for at in sources], [self.stops[at] for at in sources])

    def prepended(self, text: str) -> AlignedText:
        """With a text in front, which belongs to the first character; an empty one stays empty."""
        if not self.text:
            return self
        return self.taking(text + self.text, [0] * len(text) + list(range(len(self))))

    def ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(starts, stops) as int64[characters]."""
        return _as_array(self.starts), _as_array(self.stops)


def _as_array(values: Sequence[int]) -> NDArray[np.int64]:
    if isinstance(values, range):
        return np.arange(values.start, values.stop, dtype=np.int64)
    return np.array(values, np.int64)
