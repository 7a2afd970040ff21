"""Rows of a raw dataset, gathered from its files, which are mapped as one array.

Only the first touch of a file costs time (flat_tokens/storage/mapped_stream.py), so the rows of later steps are
touched ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flat_tokens.format import Int64
from flat_tokens.loading.row_buffer import StepGroup
from flat_tokens.order.row_order import Draws
from flat_tokens.rows.batch import Batch
from flat_tokens.rows.cut import RowCut
from flat_tokens.storage.mapped_stream import MappedStream


class MappedRows:
    """Rows of `cut.length` tokens. It has the methods of RowBuffer."""

    tokens_ahead = 0

    def __init__(self, stream: MappedStream, cut: RowCut) -> None:
        self._stream = stream
        self._cut = cut

    def prepare(self, groups: Sequence[StepGroup]) -> list[Int64]:
        """Make the rows of the first group readable. Return the first token of each row, for each of its steps."""
        firsts = self._touch(groups[0].draws, is_alone=False)
        return list(firsts.reshape(groups[0].step_count, -1))

    def batch(self, firsts: Int64) -> Batch:
        """A batch of prepared rows."""
        return self._cut.batch(self._stream.values, firsts)

    def batch_alone(self, draws: Draws) -> Batch:
        """The batch of one step. Only its own rows are checked."""
        return self.batch(self._touch(draws, is_alone=True))

    def _touch(self, draws: Draws, is_alone: bool) -> Int64:
        firsts = draws.rows() * self._cut.length
        self._stream.touch(np.maximum(firsts - 1, 0), firsts + self._cut.length, is_alone)
        return firsts
