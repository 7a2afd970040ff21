"""Rows in memory, in the order of the batches: where shuffled reading puts them.

A row of seq_len targets is kept as seq_len + 1 encoded tokens, the one in front of its first target included: 4
bytes a token. The memory is allocated once and filled again and again, since memory that a process touches first
is slow; what a batch holds is copied out of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flat_tokens.batch import Batch, Int32
from flat_tokens.row_cut import RowCut


class RowWindow:
    """Up to `capacity` rows of `length` targets.

    encoded: uint32[capacity, length + 1], the token in front of the row in column 0 (anything where the row
    begins with a start). lengths: int32[capacity], tokens in front of the padding, or None where rows are full."""

    def __init__(self, capacity: int, length: int, is_padded: bool) -> None:
        self.length = length
        self.encoded = np.zeros((capacity, length + 1), dtype=np.uint32)
        self.lengths: Int32 | None = np.zeros(capacity, dtype=np.int32) if is_padded else None
        self._tokens = self.encoded.reshape(-1)
        self._firsts = np.arange(capacity, dtype=np.int64) * (length + 1) + 1

    def batch(self, first: int, stop: int, cut: RowCut) -> Batch:
        """The rows [first, stop) as a batch of its own memory."""
        lengths = None if self.lengths is None else self.lengths[first:stop].copy()
        return cut.batch(self._tokens, self._firsts[first:stop], lengths)

    def copy_rows(
        self, source: RowWindow, rows: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
    ) -> None:
        """Copy some rows of another window of the same length into some places of this one."""
        self.encoded[places] = source.encoded[rows]
        if self.lengths is not None and source.lengths is not None:
            self.lengths[places] = source.lengths[rows]
