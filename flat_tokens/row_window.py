"""Rows in memory, in the order of the batches, as small as they get: where shuffled reading puts them.

A row of seq_len targets is kept as seq_len + 1 ids, the one in front of its first target included, in 16 bits
where max_token_id allows it, and a bit a token says where sequences start: 2.1 bytes a token, or 4.1. The
memory is allocated once and filled again and again, since memory that a process touches first is slow; what a
batch holds is copied out of it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.batch import Batch

Int32 = npt.NDArray[np.int32]


def narrow_dtype(max_token_id: int) -> np.dtype[Any]:
    """uint16 if it holds every id, else uint32."""
    return np.dtype(np.uint16 if max_token_id < 2**16 else np.uint32)


class ArrayPool:
    """Arrays of one shape, used again once nobody holds them: neither the batch nor a view of it.

    malloc gives memory of this size back to the system each time, and a batch of 64 x 1,024 then costs 128
    page faults, as much as everything else about it. An array is free when this pool has the only reference
    to it; where references are not counted exactly (free-threaded builds), it is simply never used again."""

    SIZE = 8

    def __init__(self) -> None:
        self._arrays: list[npt.NDArray[Any]] = []

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """An array of arbitrary content. For one thread at a time."""
        arrays = self._arrays
        if arrays and (arrays[0].shape != shape or arrays[0].dtype != dtype):
            arrays.clear()
        for index in range(len(arrays)):
            if sys.getrefcount(arrays[index]) == 2:  # the list's and the argument's
                return arrays[index]
        array = np.empty(shape, dtype=dtype)
        if len(arrays) < self.SIZE:
            arrays.append(array)
        return array


class RowWindow:
    """Up to `capacity` rows of `length` targets.

    ids: narrow[capacity, length + 1], the id in front of the row in column 0 (anything where the row begins
    with a start). starts: uint8[capacity, ceil(length / 8)], bits as np.packbits sets them. lengths:
    int32[capacity], tokens in front of the padding, or None where rows are full."""

    def __init__(self, capacity: int, length: int, max_token_id: int, is_padded: bool) -> None:
        self.length = length
        self.ids = np.zeros((capacity, length + 1), dtype=narrow_dtype(max_token_id))
        self.starts = np.zeros((capacity, -(-length // 8)), dtype=np.uint8)
        self.lengths: Int32 | None = np.zeros(capacity, dtype=np.int32) if is_padded else None

    def batch(self, first: int, stop: int, dtype: np.dtype[Any], pool: ArrayPool) -> Batch:
        """The rows [first, stop) as a batch of its own memory. Cost: 0.5 ns a token with a dtype of 32 bits."""
        ids = self.ids[first:stop]
        starts = self.starts[first:stop]
        if self.length % 8:
            flags = np.unpackbits(starts, axis=1, count=self.length)
        else:  # without an axis it is ten times faster
            flags = np.unpackbits(starts.reshape(-1)).reshape(stop - first, self.length)
        is_seq_start = flags.view(np.bool_)
        targets = pool.take(flags.shape, dtype)
        np.copyto(targets, ids[:, 1:], casting="unsafe")  # the loader has checked that the dtype holds them
        inputs = pool.take(flags.shape, dtype)
        np.copyto(inputs, ids[:, :-1], casting="unsafe")
        np.copyto(inputs, 0, where=is_seq_start)
        return Batch(
            inputs, targets, is_seq_start, None if self.lengths is None else self.lengths[first:stop].copy()
        )

    def copy_rows(
        self, source: RowWindow, rows: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
    ) -> None:
        """Copy some rows of another window of the same length, whose ids fit, into some places of this one."""
        self.ids[places] = source.ids[rows]
        self.starts[places] = source.starts[rows]
        if self.lengths is not None and source.lengths is not None:
            self.lengths[places] = source.lengths[rows]
