"""Encoded rows as a model takes them: targets, inputs one further, start flags.

The loop is in C++ where the package was built with it (flat_tokens/native/cut_rows.hpp), else in numpy:
`cut_with_numpy` is the specification, and both fill the same arrays (tests/flat_tokens/test_row_cut.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.built import core
from flat_tokens.loading.batch import IGNORED_LABEL, Batch
from flat_tokens.loading.segments import Int32

Int64 = npt.NDArray[np.int64]
Uint32 = npt.NDArray[np.uint32]
Cut = Callable[[Any, Any, int, int, Any, Any, Any], None]  # as cut_with_numpy

_ONE = np.uint32(1)
LINE_BYTES = 64


def cut_with_numpy(
    encoded: Uint32,
    firsts: Int64,
    length: int,
    start_id: int,
    inputs: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    is_start: npt.NDArray[np.bool_],
) -> None:
    """Fill inputs, targets and is_start with the rows that begin at some positions of `encoded`.

    encoded: uint32[tokens]; firsts: int64[rows], each with `length` tokens from it on inside `encoded`. start_id: the
    input where a sequence starts. inputs and targets: integers [rows, length] that hold it and every id; is_start: bool
    of that shape. [3, 4, 7, 8], [1], 3, 0 -> inputs [[1, 0, 3]], targets [[2, 3, 4]], is_start [[False, True, False]].
    The token in front of position 0 is the one at 0: a split begins with a start, so nothing is seen of it."""
    rows = np.empty((len(firsts), length + 1), dtype=np.uint32)
    if len(encoded) > length:
        rows[:] = windows_of(encoded, length + 1)[np.maximum(firsts, 1) - 1]
    if not firsts.all():
        rows[firsts == 0, 1:] = encoded[:length]
        rows[firsts == 0, 0] = encoded[0]
    flags = is_start.view(np.uint8)
    np.copyto(
        flags, rows[:, 1:], casting="unsafe"
    )  # narrow first: a comparison of wide ones takes twice as long
    flags &= np.uint8(1)
    np.right_shift(rows, _ONE, out=rows)
    np.copyto(targets, rows[:, 1:], casting="unsafe")  # the caller has checked that they fit
    np.copyto(inputs, rows[:, :-1], casting="unsafe")
    np.copyto(inputs, start_id, where=is_start)


def windows_of(encoded: Uint32, length: int) -> Uint32:
    """All stretches of some tokens, uint32[tokens - length + 1, length], a view: [1, 2, 3], 2 -> [[1, 2], [2, 3]].
    length: at most what there is."""
    return np.ndarray((len(encoded) - length + 1, length), np.uint32, encoded, 0, (4, 4))


def cut_labels_with_numpy(
    encoded: Uint32,
    firsts: Int64,
    length: int,
    ignored: int,
    labels: npt.NDArray[Any],
    ids: npt.NDArray[Any],
    is_start: npt.NDArray[np.bool_],
) -> None:
    """Fill labels, ids and is_start with the rows that begin at some positions of `encoded`, as cut_with_numpy does,
    unshifted: labels, int32 or int64, are the ids, but `ignored` where a sequence starts.
    [3, 4, 7, 8], [1], 3, -100 -> labels [[2, -100, 4]], ids [[2, 3, 4]], is_start [[False, True, False]]."""
    cut_with_numpy(encoded, firsts, length, 0, labels, ids, is_start)
    np.copyto(labels, ids)
    np.copyto(labels, ignored, where=is_start)


cut_rows: Cut = cut_with_numpy if core is None else core.cut_rows
cut_labels: Cut = cut_labels_with_numpy if core is None else core.cut_labels


class BatchPool:
    """Memory of batches, used again once nobody holds any of it: neither the batch nor an array nor a view.

    malloc gives memory of this size back to the system each time, and the page faults of a batch then cost as much as
    everything else about it. Arrays are free when this pool has the only references to them; where references are not
    counted exactly (free-threaded builds), they are simply never used again. They begin where a cache line does:
    stores that cross lines are slower."""

    SIZE = 8

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._batches: list[tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]] = []

    def take(
        self, shape: tuple[int, int]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """inputs, targets and start flags of arbitrary content, to be unpacked at once: who holds the
        tuple alone holds nothing. For one thread at a time."""
        count, batches = sys.getrefcount, self._batches
        for batch in batches:
            if count(batch[0]) == count(batch[1]) == count(batch[2]) == 2:  # the tuple's and the argument's
                if batch[0].shape == shape:
                    return batch
                batches.clear()
                break
        new = _aligned(shape, self._dtype), _aligned(shape, self._dtype), _aligned(shape, np.dtype(np.bool_))
        batches.append(new)
        if len(batches) > self.SIZE:  # the oldest may be held for good
            del batches[0]
        return new


def _aligned(shape: tuple[int, int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    # A view of an array would be counted at the array that owns the memory, not here; of a bytearray it is not.
    memory = bytearray(shape[0] * shape[1] * dtype.itemsize + LINE_BYTES)
    address = np.frombuffer(memory, dtype=np.uint8).ctypes.data
    return np.ndarray(shape, dtype, memory, -address % LINE_BYTES)


class RowCut:
    """Batches of rows of `length` tokens, of ids of `dtype`, which must hold them. start_id: the input where a sequence
    starts. is_labelled: whether batches have labels (Batch.cut_labels) in place of inputs; dtype is int32 or int64
    then. For one thread at a time."""

    def __init__(
        self, length: int, dtype: np.dtype[Any], start_id: int = 0, is_labelled: bool = False
    ) -> None:
        self.length = length
        self._start_id = start_id
        self._is_labelled = is_labelled
        self._pool = BatchPool(dtype)

    def batch(
        self,
        encoded: Uint32,
        firsts: Int64,
        lengths: Int32 | None = None,
        trained: npt.NDArray[np.bool_] | None = None,
    ) -> Batch:
        """The rows that begin at some positions of `encoded`, as `cut_with_numpy` or `cut_labels_with_numpy` says, as a
        batch of its own memory. lengths, trained: as Batch has them."""
        second, ids, is_start = self._pool.take((len(firsts), self.length))
        if self._is_labelled:
            cut_labels(encoded, firsts, self.length, IGNORED_LABEL, second, ids, is_start)
            return Batch(None, ids, is_start, lengths, second, trained)
        cut_rows(encoded, firsts, self.length, self._start_id, second, ids, is_start)
        return Batch(second, ids, is_start, lengths, None, trained)
