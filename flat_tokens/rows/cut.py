"""Batches cut from encoded rows: IDs, inputs or labels, start flags (flat_tokens/native/cut_rows.hpp)."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.built import native
from flat_tokens.format import Bools, Int32, Int64, Uint32
from flat_tokens.rows.batch import IGNORED_LABEL, Batch

POOL_SIZE = 8  # batches
LINE_BYTES = 64  # of a cache line: stores that cross lines are slower


def windows_of(encoded: Uint32, length: int) -> Uint32:
    """A view of all spans of `length` tokens, uint32[spans, length]: [1, 2, 3], 2 -> [[1, 2], [2, 3]]."""
    return np.ndarray((len(encoded) - length + 1, length), np.uint32, encoded, 0, (4, 4))


class RowCut:
    """Cuts batches of rows of `length` tokens. For one thread at a time.

    dtype: type of the IDs, which it must hold.
    start_id: input where a sequence starts.
    is_labelled: whether batches have labels (Batch.cut_labels) instead of inputs; dtype is int32 or int64 then.
    has_pool: whether it will make several batches of one shape.

    Memory of a batch is used again when there is no reference to any of its arrays or views. malloc would return
    memory of this size to the system each time, and the page faults would cost as much as the rest of a batch.
    """

    def __init__(
        self,
        length: int,
        dtype: np.dtype[Any],
        start_id: int = 0,
        is_labelled: bool = False,
        has_pool: bool = True,
    ) -> None:
        self.length = length
        self._dtypes = dtype, dtype, np.dtype(np.bool_)
        self._start_id = start_id
        self._is_labelled = is_labelled
        self._has_pool = has_pool
        self._pool: list[list[npt.NDArray[Any]]] = []

    def batch(
        self, encoded: Uint32, firsts: Int64, lengths: Int32 | None = None, trained: Bools | None = None
    ) -> Batch:
        """The rows that begin at positions `firsts` of `encoded`. lengths, trained: see Batch."""
        second, ids, is_start = self._memory((len(firsts), self.length))
        if self._is_labelled:
            native.cut_labels(encoded, firsts, self.length, IGNORED_LABEL, second, ids, is_start)
            return Batch(None, ids, is_start, lengths, second, trained)
        native.cut_rows(encoded, firsts, self.length, self._start_id, second, ids, is_start)
        return Batch(second, ids, is_start, lengths, None, trained)

    def _memory(self, shape: tuple[int, int]) -> list[npt.NDArray[Any]]:
        """Unused arrays. Unpack the result at once: a reference to the list does not keep them in use."""
        if not self._has_pool:
            return [np.empty(shape, dtype) for dtype in self._dtypes]
        count, pool = sys.getrefcount, self._pool
        for arrays in pool:
            if count(arrays[0]) == count(arrays[1]) == count(arrays[2]) == 2:  # of the list and the argument
                if arrays[0].shape == shape:
                    return arrays
                pool.clear()
                break
        pool.append([_aligned(shape, dtype) for dtype in self._dtypes])
        if len(pool) > POOL_SIZE:  # the caller may keep the oldest for good
            del pool[0]
        return pool[-1]


def _aligned(shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array at the start of a cache line."""
    # Views of an array refer to the array that owns the memory. With a bytearray as the owner, they refer to this one.
    memory = bytearray(shape[0] * shape[1] * dtype.itemsize + LINE_BYTES)
    address = np.frombuffer(memory, dtype=np.uint8).ctypes.data
    return np.ndarray(shape, dtype, memory, -address % LINE_BYTES)


class RowTable:
    """Slots for rows of `length` tokens.

    tokens: uint32[slots, length + 1]; column 0 is the token before the row, the first input. Its value is arbitrary if
        the row begins with a start.
    lengths: int32[slots], tokens before the padding; None if no row is padded.
    trained: bool[slots, length], which targets contribute to the loss; None for all.

    A slot that was never filled is a row of padding with token ID 0.
    """

    def __init__(self, slots: int, length: int, is_padded: bool, is_masked: bool) -> None:
        self.length = length
        self.tokens: Uint32 = np.zeros((slots, length + 1), dtype=np.uint32)
        self.lengths: Int32 | None = np.zeros(slots, dtype=np.int32) if is_padded else None
        self.trained: Bools | None = np.zeros((slots, length), dtype=np.bool_) if is_masked else None

    def batch(self, slots: Int64, cut: RowCut) -> Batch:
        """Copy the rows in some slots to a batch."""
        lengths = None if self.lengths is None else self.lengths[slots]
        trained = None if self.trained is None else self.trained[slots]
        return cut.batch(self.tokens.reshape(-1), slots * (self.length + 1) + 1, lengths, trained)
