"""Documents on their way to the encoder: their text end to end, and where each begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Marks(NamedTuple):
    """What of documents is to be learned. trained: int64[stretches, 3], (document, start, stop) in its bytes, rising.
    cuts: int64[cuts, 2], (document, byte) that no token may lie across. has_special: bool[documents], whether it holds
    the text of a special token that is to stay text. of_chats: whether a template made the texts, so that special
    tokens in them are tokens where no cut is."""

    trained: NDArray[np.int64]
    cuts: NDArray[np.int64]
    has_special: NDArray[np.bool_]
    of_chats: bool

    def of(self, kept: NDArray[np.bool_]) -> Marks:
        """Those of some documents."""
        numbers = np.cumsum(kept) - 1
        trained, cuts = (marks[kept[marks[:, 0]]] for marks in (self.trained, self.cuts))
        trained[:, 0], cuts[:, 0] = numbers[trained[:, 0]], numbers[cuts[:, 0]]
        return Marks(trained, cuts, self.has_special[kept], self.of_chats)


@dataclass(frozen=True)
class Batch:
    """Document i is [offsets[i], offsets[i + 1]) of `text`, valid UTF-8; offsets uint64[documents + 1], from 0 on.

    line_of: of a document that begins at this place of its source, the number of its line from the first of the piece
    on, for JSON Lines. marks: of documents that are to be learned in part. Valid until the next batch of the same
    reader is asked for.
    """

    text: Buffer
    offsets: NDArray[np.uint64]
    line_of: Callable[[int], int] | None = None
    marks: Marks | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows(self, start: int, stop: int) -> Batch:
        """Documents [start, stop), which share the batch's memory, less their marks."""
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
        marks = None if self.marks is None else self.marks.of(kept)
        return Batch.of([view[start:stop] for start, stop in zip(starts, stops, strict=True)], marks)

    @staticmethod
    def of(texts: Sequence[Buffer], marks: Marks | None = None) -> Batch:
        """The batch of these texts, copied. [b"ab", b"", b"c"] -> b"abc", [0, 2, 2, 3]."""
        offsets = np.zeros(len(texts) + 1, dtype=np.uint64)
        np.cumsum([memoryview(text).nbytes for text in texts], out=offsets[1:])
        return Batch(b"".join(texts), offsets, marks=marks)
