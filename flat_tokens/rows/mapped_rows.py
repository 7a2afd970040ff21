"""Rows of a raw dataset, gathered from its files, which are mapped as one array.

Only the first touch of a file costs time (flat_tokens/storage/mapped_stream.py), so the rows of later steps are touched
ahead of time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flat_tokens.loading.batch import Batch
from flat_tokens.rows.row_buffer import StepGroup
from flat_tokens.rows.row_cut import RowCut
from flat_tokens.rows.row_order import Draws
from flat_tokens.storage.mapped_stream import MappedStream

Int64 = npt.NDArray[np.int64]


class MappedRows:
    """Rows of `cut.length` tokens; see RowBuffer, which has the same methods."""

    tokens_ahead = 0

    def __init__(self, stream: MappedStream, cut: RowCut) -> None:
        self._stream = stream
        self._cut = cut

    def prepare(self, groups: Sequence[StepGroup]) -> list[Int64]:
        """Make the rows of the first group readable, and return the first token of each row of each of its steps."""
        firsts = self._firsts(groups[0].draws)
        self._touch(firsts, is_alone=False)
        return list(firsts.reshape(groups[0].step_count, -1))

    def batch(self, firsts: Int64) -> Batch:
        """A batch of prepared rows."""
        return self._cut.batch(self._stream.values, firsts)

    def batch_alone(self, draws: Draws) -> Batch:
        """The batch of one step, with only its own rows checked."""
        firsts = self._firsts(draws)
        self._touch(firsts, is_alone=True)
        return self.batch(firsts)

    def _firsts(self, draws: Draws) -> Int64:
        return draws.rows() * self._cut.length

    def _touch(self, firsts: Int64, is_alone: bool) -> None:
        self._stream.touch(np.maximum(firsts - 1, 0), firsts + self._cut.length, is_alone)
