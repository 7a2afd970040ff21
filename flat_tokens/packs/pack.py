"""A pack: whole sequences side by side in a row of fixed length, and what keeps them apart: positions,
segments, masks.

The names are torchtune's (tokens, labels, input_pos, seq_lens), and so is the content: labels are the tokens
themselves, not shifted, with -100 at the pads; the trainer shifts. Everything is int32, which holds every id;
torch wants `.astype(numpy.int64)`, JAX takes it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flat_tokens.format import Bools, Uint32
from flat_tokens.loading import segments
from flat_tokens.loading.batch import IGNORED_LABEL, Batch
from flat_tokens.loading.segments import Int32
from flat_tokens.rows.row_cut import Int64, RowCut
from tokenmill.stores.system import cached_property

FIELDS = ("tokens", "labels", "input_pos", "seq_lens")


@dataclass(frozen=True)
class Pack:
    """One row. Read it by attribute, `pack.tokens`, or by key, `pack["tokens"]`; `dict(pack)` has the four of
    torchtune.

    tokens: int32[max_seq_len], padding_id at the pads. labels: int32[max_seq_len], the tokens, -100 at the
    pads. input_pos: int32[max_seq_len], the position within the sequence; at the pads it counts on, up to
    max_seq_len - 1. seq_lens: int32[segments], the tokens of each sequence, or part of one, and at last the
    number of pads, if there are any; their sum is max_seq_len. token_count: how many are not padding."""

    tokens: Int32
    labels: Int32
    input_pos: Int32
    seq_lens: Int32
    token_count: int

    def __getitem__(self, field: str) -> Int32:
        if field not in FIELDS:
            raise KeyError(f"fields of a pack are {', '.join(FIELDS)} (got {field!r})")
        value: Int32 = getattr(self, field)
        return value

    def keys(self) -> tuple[str, ...]:
        """("tokens", "labels", "input_pos", "seq_lens"): what dict(pack) takes."""
        return FIELDS

    def __iter__(self) -> Iterator[str]:
        return iter(FIELDS)

    def __len__(self) -> int:
        return len(FIELDS)

    @property
    def cu_seqlens(self) -> Int32:
        """Where the segments begin and the last ends, for kernels of variable length: int32[segments + 1].

        seq_lens [3, 2, 1] -> [0, 3, 5, 6]. The pads are a segment of their own."""
        found: Int32 = np.cumsum(np.concatenate([[0], self.seq_lens]), dtype=np.int32)
        return found

    @property
    def max_seqlen(self) -> int:
        """The longest segment, which such kernels want beside cu_seqlens."""
        return int(self.seq_lens.max())

    @property
    def segment_ids(self) -> Int32:
        """1 for the tokens of the first sequence, 2 for the second ...; 0 at the pads: int32[max_seq_len]."""
        lengths = np.array([self.token_count], dtype=np.int32)
        found: Int32 = segments.segment_ids(self.cu_seqlens, len(self.tokens), lengths)[0]
        return found

    def mask(self) -> Bools:
        """Who may attend to whom, bool[max_seq_len, max_seq_len], row i for query i; see
        segments.block_causal_mask."""
        return segments.block_causal_mask(self.segment_ids)


class PackBatch(Batch):
    """Several packs, a row each, with all that a Batch has: segment_ids, cu_seqlens, max_seqlen, mask(), and inputs,
    which are 0 where a sequence, or a part of one, begins. tokens, labels, input_pos: int32[packs, max_seq_len], see
    Pack; positions are input_pos. seq_lens: an array a pack."""

    def __init__(self, batch: Batch, skipped: Int64 | None, ignore_first_labels: bool) -> None:
        super().__init__(batch.inputs, batch.ids, batch.is_seq_start, batch.lengths, trained=batch.trained)
        self._skipped = skipped
        self._ignore_first_labels = ignore_first_labels

    @staticmethod
    def of_table(
        table: Uint32,
        lengths: Int32,
        skipped: Int64 | None,
        ignore_first_labels: bool,
        trained: Bools | None = None,
    ) -> PackBatch:
        """The packs of a table, uint32[packs or more, 1 + max_seq_len], of encoded tokens. skipped: how many tokens of
        its first sequence lie in front of each pack, for positions that go on counting; None for positions that do
        not. trained: as Batch has it."""
        length = table.shape[1] - 1
        firsts = np.arange(len(lengths), dtype=np.int64) * (length + 1) + 1
        cut = RowCut(length, np.dtype(np.int32))
        return PackBatch(cut.batch(table.reshape(-1), firsts, lengths, trained), skipped, ignore_first_labels)

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """The ids, padding_id at the pads."""
        return self.ids

    @cached_property
    def labels(self) -> Int32:
        """The tokens, -100 at the pads, at what is not to be learned and, where that was asked for, at the first token
        of each sequence."""
        labels: Int32 = self.ids.copy()
        np.copyto(labels, IGNORED_LABEL, where=~self.loss_mask)
        if self._ignore_first_labels:
            labels[self.is_seq_start] = IGNORED_LABEL
        return labels

    @cached_property
    def positions(self) -> Int32:
        """See Pack.input_pos."""
        found = segments.positions(self.cu_seqlens, self.ids.shape[1], self.lengths)
        if self._skipped is not None:
            length = self.ids.shape[1]
            for row in np.flatnonzero(self._skipped).tolist():
                assert self.lengths is not None
                head = int(self.seq_lens[row][0])
                found[row, :head] = (found[row, :head] + int(self._skipped[row]) % length) % length
                if head == self.lengths[row] < length:  # the pads count on behind it
                    pads = found[row, head:]
                    np.minimum(found[row, head - 1] + 1 + np.arange(len(pads)), length - 1, out=pads)
        return found

    @property
    def input_pos(self) -> Int32:
        """The same under torchtune's name."""
        return self.positions

    @cached_property
    def seq_lens(self) -> list[Int32]:
        """Of each pack the tokens of its segments, the pads at last."""
        lengths = np.diff(self.cu_seqlens)
        ends = np.arange(1, len(self)) * self.ids.shape[1]
        return np.split(lengths, np.searchsorted(self.cu_seqlens, ends))

    def packs(self) -> list[Pack]:
        """Each row by itself; their arrays are views."""
        assert self.lengths is not None
        return [
            Pack(self.tokens[row], self.labels[row], self.input_pos[row], self.seq_lens[row], count)
            for row, count in enumerate(self.lengths.tolist())
        ]
