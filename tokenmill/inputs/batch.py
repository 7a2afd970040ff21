"""A batch of documents for the encoder: their text end to end, and where each begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Marks(NamedTuple):
    """Which parts of documents are trained on.

    trained: int64[spans, 3], ascending (document, start, stop) in bytes of the document.
    cuts: int64[cuts, 2], (document, byte) that no token may cross.
    has_special: bool[documents], whether a document has the text of a special token that must remain text.
    of_chats: a template made the texts; special tokens in them are tokens, except at cuts.
    """

    trained: NDArray[np.int64]
    cuts: NDArray[np.int64]
    has_special: NDArray[np.bool_]
    of_chats: bool

    def of(self, kept: NDArray[np.bool_]) -> Marks:
        """Return the marks of the documents that are kept."""
        numbers = np.cumsum(kept) - 1
        trained, cuts = (marks[kept[marks[:, 0]]] for marks in (self.trained, self.cuts))
        trained[:, 0], cuts[:, 0] = numbers[trained[:, 0]], numbers[cuts[:, 0]]
        return Marks(trained, cuts, self.has_special[kept], self.of_chats)


@dataclass(frozen=True)
class Batch:
    """Document i is [offsets[i], offsets[i + 1]) of `text`. Valid until the reader's next batch.

    text: valid UTF-8.
    offsets: uint64[documents + 1], from 0 on.
    marks: for records with a loss mask.
    """

    text: Buffer
    offsets: NDArray[np.uint64]
    marks: Marks | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows(self, start: int, stop: int) -> Batch:
        """Return documents [start, stop), which share the batch's memory, without their marks."""
        if start == 0 and stop == len(self):
            return self
        begin, end = int(self.offsets[start]), int(self.offsets[stop])
        text = memoryview(self.text)[begin:end]
        return Batch(text, self.offsets[start : stop + 1] - np.uint64(begin))

    def without(self, rows: NDArray[Any]) -> Batch:
        """Return a copy without the documents of these indices."""
        if not len(rows):
            return self
        kept = np.ones(len(self), dtype=np.bool_)
        kept[rows.astype(np.int64)] = False
        view = memoryview(self.text)
        starts, stops = self.offsets[:-1][kept].tolist(), self.offsets[1:][kept].tolist()
        marks = None if self.marks is None else self.marks.of(kept)
        texts = [view[start:stop] for start, stop in zip(starts, stops, strict=True)]
        return Batch.of(texts, marks)

    @staticmethod
    def of(texts: Sequence[Buffer], marks: Marks | None = None) -> Batch:
        """Return the batch of these texts, copied. [b"ab", b"", b"c"] -> b"abc", [0, 2, 2, 3]."""
        offsets = np.zeros(len(texts) + 1, dtype=np.uint64)
        np.cumsum([memoryview(text).nbytes for text in texts], out=offsets[1:])
        return Batch(b"".join(texts), offsets, marks)
