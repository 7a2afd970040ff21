"""Rows in memory: encoded tokens, 4 bytes each, and the position of each row in them.

Packed rows that are neighbours in the stream stay neighbours, so that whole zarr chunks are decoded in place. Other
rows have a slot of length + 1 tokens each. The memory is reused, because the first touch of new memory is slow; batches
are copies.
"""

from __future__ import annotations

import numpy as np

from flat_tokens.loading.batch import Batch
from flat_tokens.loading.segments import Bools, Int32
from flat_tokens.rows.row_cut import Int64, RowCut, Uint32, windows_of

COPIED_TOKENS = 2**15  # at a time: numpy makes an intermediate copy, which then stays in the cache


class RowWindow:
    """Up to `capacity` rows of `length` targets.

    tokens: uint32[capacity * (length + 1)].
    firsts: int64[capacity], the position of the first target of each row. The token before it is the row's first input;
        its value is arbitrary if the row begins with a start.
    lengths: int32[capacity], tokens before the padding; None if rows are full.
    trained: bool[capacity, length], which targets contribute to the loss; None for all.
    """

    def __init__(self, capacity: int, length: int, is_padded: bool, is_masked: bool = False) -> None:
        self.length = length
        self.tokens: Uint32 = np.zeros(capacity * (length + 1), dtype=np.uint32)
        self.firsts: Int64 = np.zeros(capacity, dtype=np.int64)
        self.reset()
        self.lengths: Int32 | None = np.zeros(capacity, dtype=np.int32) if is_padded else None
        self.trained: Bools | None = np.zeros((capacity, length), dtype=np.bool_) if is_masked else None

    def reset(self) -> None:
        """Give each row a separate slot."""
        self.firsts[:] = np.arange(len(self.firsts)) * (self.length + 1) + 1

    def table(self) -> Uint32:
        """The memory as uint32[capacity, length + 1], one slot per row; see `reset`."""
        return self.tokens.reshape(-1, self.length + 1)

    def take(self, places: Int64, other: RowWindow, rows: Int64) -> None:
        """Copy some rows of another window, each with the token before it, into slots of this one."""
        table, rows_of_other = self.table(), windows_of(other.tokens, self.length + 1)
        count = max(1, COPIED_TOKENS // self.length)
        for at in range(0, len(rows), count):
            some = slice(at, at + count)
            table[places[some]] = rows_of_other[other.firsts[rows[some]] - 1]
        if self.lengths is not None:
            self.lengths[places] = self.length if other.lengths is None else other.lengths[rows]
        if self.trained is not None:
            self.trained[places] = other.all_trained()[rows] if other.trained is None else other.trained[rows]

    def all_trained(self) -> Bools:
        """Where tokens are: `trained` if all of them are to be learned."""
        if self.lengths is None:
            return np.ones((len(self.firsts), self.length), dtype=np.bool_)
        return np.arange(self.length) < self.lengths[:, None]

    def batch_of(self, rows: Int64, cut: RowCut) -> Batch:
        """Copy some rows into a batch."""
        lengths = None if self.lengths is None else np.array(self.lengths[rows])
        trained = None if self.trained is None else np.array(self.trained[rows])
        return cut.batch(self.tokens, self.firsts[rows], lengths, trained)
