"""Documents on their way to the encoder: their text end to end, and where each begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Buffer


@dataclass(frozen=True)
class Batch:
    """Document i is [offsets[i], offsets[i + 1]) of `text`, valid UTF-8; offsets uint64[documents + 1], from 0 on.

    line_of: of a document that begins at this place of its source, the number of its line from the first of the piece
    on, for JSON Lines. Valid until the next batch of the same reader is asked for.
    """

    text: Buffer
    offsets: NDArray[np.uint64]
    line_of: Callable[[int], int] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows(self, start: int, stop: int) -> Batch:
        """Documents [start, stop), which share the batch's memory."""
        if start == 0 and stop == len(self):
            return self
        begin, end = int(self.offsets[start]), int(self.offsets[stop])
        text = memoryview(self.text)[begin:end]
        return Batch(text, self.offsets[start : stop + 1] - np.uint64(begin), self.line_of)

    def without(self, rows: NDArray[Any]) -> Batch:
        """The batch less the documents of these numbers, copied."""
        if not len(rows):
            return self
        kept = np.ones(len(self), dtype=np.bool_)
        kept[rows.astype(np.int64)] = False
        view = memoryview(self.text)
        starts, stops = self.offsets[:-1][kept].tolist(), self.offsets[1:][kept].tolist()
        return Batch.of([view[start:stop] for start, stop in zip(starts, stops, strict=True)])

    @staticmethod
    def of(texts: Sequence[Buffer]) -> Batch:
        """The batch of these texts, copied. [b"ab", b"", b"c"] -> b"abc", [0, 2, 2, 3]."""
        offsets = np.zeros(len(texts) + 1, dtype=np.uint64)
        np.cumsum([memoryview(text).nbytes for text in texts], out=offsets[1:])
        return Batch(b"".join(texts), offsets)
