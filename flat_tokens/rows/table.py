"""Rows in memory: encoded tokens, 4 bytes each, in a table with one row per slot."""

from __future__ import annotations

import numpy as np

from flat_tokens.format import Bools, Int32, Int64, Uint32
from flat_tokens.rows.batch import Batch
from flat_tokens.rows.cut import RowCut


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
