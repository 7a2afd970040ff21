"""A batch of packed rows straight from the mapped stream, without a window in between.

One gather brings the encoded rows, and the rest happens in the second-level cache: flags are the low bits,
targets the rest, inputs the targets one further, the id in front of each row gathered by itself. 1 ns a
token on one core, a third of it the gather; all arrays are used again once nobody holds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.batch import Batch
from flat_tokens.elements import Elements
from flat_tokens.mapped_stream import MappedStream
from flat_tokens.row_window import ArrayPool

Int64 = npt.NDArray[np.int64]

_ONE = np.uint32(1)


class RowGather:
    """Batches of rows of `length` tokens, of ids of `dtype`. For one thread at a time, but `touch`."""

    def __init__(self, stream: MappedStream, length: int, dtype: np.dtype[Any]) -> None:
        self.stream = stream
        self.length = length
        self.dtype = dtype
        count = len(stream.values) // length
        self._rows = stream.values[: count * length].reshape(count, length)
        self._pools = (ArrayPool(), ArrayPool())
        # int32 and uint32 targets are worked out where they stay, others are narrowed or widened from here
        self._word = dtype if dtype.itemsize == 4 else np.dtype(np.uint32)
        self._scratch = self._pools[0] if dtype.itemsize == 4 else ArrayPool()

    @staticmethod
    def of(tokens: Elements, length: int, dtype: np.dtype[Any]) -> RowGather | None:
        """None where the tokens are not mapped as one array."""
        stream = tokens.stream()
        return None if stream is None else RowGather(stream, length, dtype)

    def touch(self, rows: Int64, is_alone: bool = False) -> None:
        """Make some rows, and the id in front of each, readable; see MappedStream.touch."""
        starts = rows * self.length
        self.stream.touch(np.maximum(starts - 1, 0), starts + self.length, is_alone)

    def batch(self, rows: Int64) -> Batch:
        """Rows that were touched as a batch of its own memory."""
        shape = (len(rows), self.length)
        ids = self._scratch.take(shape, self._word).view(np.uint32)
        np.take(self._rows, rows, axis=0, out=ids, mode="clip")  # the other modes copy twice
        before = self.stream.values.take(rows * self.length - 1, mode="clip")  # row 0 begins with a start
        flags = self._pools[1].take(shape, np.dtype(np.uint8))
        np.copyto(flags, ids, casting="unsafe")  # narrow first: 0.1 ns a token, a comparison of wide ones 0.3
        flags &= np.uint8(1)
        is_start = flags.view(np.bool_)
        np.right_shift(ids, _ONE, out=ids)
        inputs = self._pools[0].take(shape, self.dtype)
        # The loader has checked that the dtype holds all ids.
        np.copyto(inputs.reshape(-1)[1:], ids.reshape(-1)[:-1], casting="unsafe")
        inputs[:, 0] = before >> _ONE
        np.copyto(inputs, 0, where=is_start)
        if self._scratch is self._pools[0]:
            return Batch(inputs, ids.view(self.dtype), is_start)
        targets = self._pools[0].take(shape, self.dtype)
        np.copyto(targets, ids, casting="unsafe")
        return Batch(inputs, targets, is_start)
