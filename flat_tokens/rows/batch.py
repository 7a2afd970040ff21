"""The arrays of a training step: inputs, targets, and where sequences start.

Every token is a target once. Its input is the token before it in the same sequence, or the loader's start_id, 0 by
default, where a sequence starts (docs/reference/dataset-format.md). Segments and positions follow from the starts
and are computed on first use (flat_tokens/rows/segments.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import ArgumentError
from flat_tokens.format import Bools, Int32
from flat_tokens.rows import segments
from tokenmill.stores.system import cached_property

IGNORED_LABEL = -100  # the default ignore_index of torch's cross entropy
FIELDS = ("inputs", "targets", "is_seq_start", "segment_ids", "positions")


class Batch:
    """The rows of one step on one rank. Arrays are [rows, seq_len] unless stated otherwise, and belong to the caller.

    inputs: integers of the loader's dtype; the token before each target, start_id at the start of a sequence.
    ids: integers of the loader's dtype; the tokens.
    targets: like ids, but -100 at padding and at tokens that the loss mask excludes.
    is_seq_start: bool; true at the first token of a sequence. In packs also at the first token of each part of a cut
        one.
    segment_ids: int32; 1 for the first sequence of a row (or the rest of one), 2 for the next and so on, 0 at padding.
    positions: int32; 0 at each start and at the first token of the row, then counting up.
    lengths: int32[rows] or None; tokens before the padding, 0 for a row of padding. None if no row is padded.
    cu_seqlens: int32[segments + 1]; bounds of the segments of the flattened rows. The padding of a row is one segment.
    max_seqlen: int; tokens of the longest segment.
    trained: bool or None; false at padding and at tokens that the loss mask excludes. None without a loss mask.
    loss_mask: bool; true where a loss is computed.
    cut_labels: labels that an adapter requested (flat_tokens/fields.py), otherwise None. Such a batch has no inputs:
        reading them raises ArgumentError.

    Sequences [1, 2], [3, 4, 5], [6, 7, 8] in rows of 4 tokens:
    inputs [[0, 1, 0, 3], [4, 0, 6, 7]], targets [[1, 2, 3, 4], [5, 6, 7, 8]],
    segment_ids [[1, 1, 2, 2], [1, 2, 2, 2]], positions [[0, 1, 0, 1], [0, 0, 1, 2]].
    """

    def __init__(
        self,
        inputs: npt.NDArray[Any] | None,
        ids: npt.NDArray[Any],
        is_seq_start: Bools,
        lengths: Int32 | None = None,
        cut_labels: npt.NDArray[Any] | None = None,
        trained: Bools | None = None,
    ) -> None:
        self._inputs = inputs
        self.ids = ids
        self.is_seq_start = is_seq_start
        self.lengths = lengths
        self.cut_labels = cut_labels
        self.trained = trained
        if trained is None and lengths is None:
            self.targets = ids

    @property
    def inputs(self) -> npt.NDArray[Any]:
        """See the class. Raise ArgumentError for a batch that was cut with labels."""
        if self._inputs is None:
            raise ArgumentError(
                "inputs: this batch was cut with labels and has no inputs. Use the batches of the Loader itself."
            )
        return self._inputs

    @cached_property
    def targets(self) -> npt.NDArray[Any]:
        """See the class. Computed on first use if there is a mask or padding."""
        return np.where(self.loss_mask, self.ids, self.ids.dtype.type(IGNORED_LABEL))

    @property
    def loss_mask(self) -> Bools:
        """See the class."""
        return ~self.is_padding if self.trained is None else self.trained

    @cached_property
    def cu_seqlens(self) -> Int32:
        """See the class."""
        return segments.segment_bounds(self.is_seq_start, self.lengths)

    @property
    def max_seqlen(self) -> int:
        """See the class; 0 without rows."""
        return int(np.diff(self.cu_seqlens).max(initial=0))

    @cached_property
    def segment_ids(self) -> Int32:
        """See the class."""
        return segments.segment_ids(self.cu_seqlens, self.ids.shape[1], self.lengths)

    @cached_property
    def positions(self) -> Int32:
        """See the class."""
        return segments.positions(self.cu_seqlens, self.ids.shape[1], self.lengths)

    def mask(self) -> Bools:
        """The causal attention mask within each segment, bool[rows, seq_len, seq_len]."""
        return segments.block_causal_mask(self.segment_ids)

    @property
    def is_padding(self) -> Bools:
        """True where a row has no token."""
        if self.lengths is None:
            return np.zeros(self.ids.shape, dtype=np.bool_)
        return np.arange(self.ids.shape[1], dtype=np.int32) >= self.lengths[:, None]

    def as_dict(self) -> dict[str, npt.NDArray[Any]]:
        """The five arrays by name."""
        return {name: getattr(self, name) for name in FIELDS}

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (getattr(self, name) for name in FIELDS)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        rows, length = self.ids.shape
        return f"<Batch of {rows} rows of {length}, {self.ids.dtype.name}>"
