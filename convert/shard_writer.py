"""Writing a shard while its text is encoded: ids go to the file a few MiB at a time, so a shard needs no memory.

What is added waits until an array has FLUSH_BYTES, or until the end: a text chunk of usual size is four arrays one
after the other. The ids of a document that comes in pieces are written before it is known which split it falls in; its
segments get their array when it ends.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from convert.errors import BrokenInvariant, naming
from convert.shard import DROPPED, STARTS, TOKENS, SplitCounts, shard_path

FLUSH_BYTES = 4 << 20
_UNDECIDED = 5  # the array of the ids of a document that has not ended


class ShardWriter:
    """The shard of one text chunk, open as a context; without `finish` nothing stays of it.

    dtype: of the ids, uint16 or uint32. largest_id: of the tokenizer; a higher one is a bug and raises
    BrokenInvariant. Splits: 0 train, 1 validation. OSError names the file. 20 MiB of memory.
    """

    def __init__(self, folder: Path, chunk_index: int, dtype: np.dtype[Any], largest_id: int) -> None:
        self._path = shard_path(folder, chunk_index)
        self._temporary = self._path.with_suffix(".tmp")
        self._dtype = dtype
        self._largest_id = largest_id
        self._documents, self._sequences, self._tokens, self._highest = [0, 0], [0, 0], [0, 0], [0, 0]
        self._waiting: list[list[NDArray[Any]]] = [[] for _ in range(6)]
        self._waiting_bytes = [0] * 6
        self._open_tokens = self._open_highest = 0  # of a document that has not ended
        self._segments: list[list[int]] = []
        self._checksum = _core.Xxh64()
        self._file = self._temporary.open("wb", buffering=0)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._file.closed:
            self._file.close()
        if kind is not None:
            self._temporary.unlink(missing_ok=True)  # on a full disk its space is needed to go on

    def add(self, split: int, tokens: NDArray[np.uint32], lengths: NDArray[np.uint64]) -> None:
        """Add whole documents to a split: their ids end to end and the length of each, empty ones too. Copies."""
        if self._open_tokens:
            raise BrokenInvariant(f"{self._path}: a document begins before the one in pieces has ended")
        self._documents[split] += len(lengths)
        self._highest[split] = max(self._highest[split], self._check(tokens))
        self._add_starts(split, lengths[lengths > 0])
        self._wait(TOKENS + split, tokens.astype(self._dtype))
        self._tokens[split] += len(tokens)

    def extend(self, tokens: NDArray[np.uint32]) -> None:
        """Add the next ids of a document that comes in pieces. Copies."""
        self._open_highest = max(self._open_highest, self._check(tokens))
        self._open_tokens += len(tokens)
        self._wait(_UNDECIDED, tokens.astype(self._dtype))

    def end_document(self, split: int) -> None:
        """The document of the pieces since the last one ends and belongs to this split; without ids it is empty."""
        self._documents[split] += 1
        self._highest[split] = max(self._highest[split], self._open_highest)
        array = TOKENS + split
        if any(which == _UNDECIDED for which, _ in self._segments):
            self._flush(_UNDECIDED)
            for segment in self._segments:
                if segment[0] == _UNDECIDED:
                    segment[0] = array
        else:
            for tokens in self._waiting[_UNDECIDED]:
                self._wait(array, tokens)
            self._waiting[_UNDECIDED], self._waiting_bytes[_UNDECIDED] = [], 0
        lengths = np.array([self._open_tokens] if self._open_tokens else [], dtype=np.uint64)
        self._add_starts(split, lengths)
        self._tokens[split] += self._open_tokens
        self._open_tokens = self._open_highest = 0

    def drop_document(self) -> None:
        """The document of the pieces since the last one is a bad record after all: none of it counts."""
        for segment in self._segments:
            if segment[0] == _UNDECIDED:
                segment[0] = DROPPED
        self._waiting[_UNDECIDED], self._waiting_bytes[_UNDECIDED] = [], 0
        self._open_tokens = self._open_highest = 0

    def finish(self) -> tuple[int, tuple[tuple[int, int], ...], tuple[SplitCounts, SplitCounts]]:
        """Give the file its name; (checksum, segments, counts of both splits)."""
        if self._open_tokens or self._waiting[_UNDECIDED]:
            raise BrokenInvariant(f"{self._path}: a document in pieces has no end")
        with naming(self._temporary):
            for array in range(4):
                self._flush(array)
            self._file.close()
        self._temporary.replace(self._path)
        train, validation = (
            SplitCounts(documents, documents - sequences, sequences, tokens, highest)
            for documents, sequences, tokens, highest in zip(
                self._documents, self._sequences, self._tokens, self._highest, strict=True
            )
        )
        return (
            self._checksum.digest(),
            tuple((array, size) for array, size in self._segments),
            (train, validation),
        )

    def _check(self, tokens: NDArray[np.uint32]) -> int:
        """The highest of the ids; the cast that follows cannot wrap, since every id is found to fit."""
        highest = int(tokens.max()) if tokens.size else 0
        if highest > self._largest_id:
            raise BrokenInvariant(
                f"the encoder gave id {highest}, above the tokenizer's highest id {self._largest_id}"
            )
        return highest

    def _add_starts(self, split: int, lengths: NDArray[np.uint64]) -> None:
        starts = np.cumsum(lengths, dtype=np.uint64)
        starts -= lengths
        starts += np.uint64(self._tokens[split])
        self._sequences[split] += len(starts)
        self._wait(STARTS + split, starts)

    def _wait(self, array: int, values: NDArray[Any]) -> None:
        if not values.size:
            return
        self._waiting[array].append(values)
        self._waiting_bytes[array] += values.nbytes
        if self._waiting_bytes[array] >= FLUSH_BYTES:
            with naming(self._temporary):
                self._flush(array)

    def _flush(self, array: int) -> None:
        if array == _UNDECIDED:  # whichever split it falls in, the ids of the documents before it come first
            self._flush(TOKENS)
            self._flush(TOKENS + 1)
        waiting, size = self._waiting[array], self._waiting_bytes[array]
        self._waiting[array], self._waiting_bytes[array] = [], 0
        if not size:
            return
        for values in waiting:
            view = values.data.cast("B")
            self._checksum.update(view)
            while view.nbytes:
                view = view[self._file.write(view) :]
        if self._segments and self._segments[-1][0] == array:
            self._segments[-1][1] += size
        else:
            self._segments.append([array, size])
