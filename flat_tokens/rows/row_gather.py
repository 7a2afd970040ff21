"""Batches of packed rows straight from the mapped stream, without a window in between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flat_tokens.loading.batch import Batch
from flat_tokens.rows.row_cut import RowCut
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.mapped_stream import MappedStream

Int64 = npt.NDArray[np.int64]


class RowGather:
    """Batches of rows of `cut.length` tokens. For one thread at a time, but `touch`."""

    def __init__(self, stream: MappedStream, cut: RowCut) -> None:
        self.stream = stream
        self.length = cut.length
        self._cut = cut

    @staticmethod
    def of(tokens: Elements, cut: RowCut) -> RowGather | None:
        """None where the tokens are not mapped as one array."""
        stream = tokens.stream()
        return None if stream is None else RowGather(stream, cut)

    def touch(self, firsts: Int64, is_alone: bool = False) -> None:
        """Make the rows that begin at some positions, and the token in front of each, readable; see
        MappedStream.touch."""
        self.stream.touch(np.maximum(firsts - 1, 0), firsts + self.length, is_alone)

    def batch(self, firsts: Int64) -> Batch:
        """Rows that were touched as a batch of its own memory."""
        return self._cut.batch(self.stream.values, firsts)
