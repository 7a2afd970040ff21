"""A pack: whole sequences side by side in a row of fixed length, and what keeps them apart: positions,
segments, masks.

The names are torchtune's (tokens, labels, input_pos, seq_lens), and so is the content: labels are the tokens
themselves, not shifted, with -100 at the pads; the trainer shifts. Everything is int32, which holds every id;
torch wants `.astype(numpy.int64)`, JAX takes it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flat_tokens.batch import IGNORED_LABEL
from flat_tokens.errors import ArgumentError
from flat_tokens.format import Bools, Uint32

FIELDS = ("tokens", "labels", "input_pos", "seq_lens")

Int32 = npt.NDArray[np.int32]


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
            raise KeyError(f"a pack has {', '.join(FIELDS)}, not {field!r}")
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
        return cumulative_lengths(self.seq_lens)

    @property
    def max_seqlen(self) -> int:
        """The longest segment, which such kernels want beside cu_seqlens."""
        return int(self.seq_lens.max())

    @property
    def segment_ids(self) -> Int32:
        """1 for the tokens of the first sequence, 2 for the second ...; 0 at the pads: int32[max_seq_len]."""
        return segment_ids(self.seq_lens, self.token_count)

    def mask(self) -> Bools:
        """Who may look at whom: bool[max_seq_len, max_seq_len], row i for query i. A block lower-triangular
        matrix, a block a sequence, and the identity at the pads, so that no row is empty (a softmax over
        nothing is NaN)."""
        return block_causal_mask(self.segment_ids)


@dataclass(frozen=True)
class PackBatch:
    """Several packs, a row each: tokens, labels, input_pos, segment_ids int32[packs, max_seq_len]; seq_lens an
    array a pack."""

    tokens: Int32
    labels: Int32
    input_pos: Int32
    segment_ids: Int32
    seq_lens: list[Int32]

    @property
    def cu_seqlens(self) -> Int32:
        """Of the flattened batch: int32[segments + 1], from 0 to packs * max_seq_len."""
        return cumulative_lengths(np.concatenate([np.zeros(0, np.int32), *self.seq_lens]))

    @property
    def max_seqlen(self) -> int:
        """The longest segment."""
        return max((int(lengths.max()) for lengths in self.seq_lens), default=0)

    def mask(self) -> Bools:
        """Pack.mask() of each: bool[packs, max_seq_len, max_seq_len]. A byte an element: 64 packs of 1,024 are
        64 MiB."""
        return block_causal_mask(self.segment_ids)


def build_pack(
    encoded: Sequence[Uint32],
    skipped: int,
    max_seq_len: int,
    padding_id: int,
    restart_positions: bool,
    ignore_first_labels: bool,
) -> Pack:
    """A pack of pieces of the stored stream, each beginning a segment as does each token with a start flag.

    skipped: how many tokens of its sequence lie in front of the first piece. [[3, 4], [7]], 0, 4, 9 -> tokens
    [1, 2, 3, 9], labels [1, 2, 3, -100], input_pos [0, 1, 0, 1], seq_lens [2, 1, 1]."""
    joined = encoded[0] if len(encoded) == 1 else np.concatenate(encoded)
    count = len(joined)
    begins = (joined & np.uint32(1)).astype(np.bool_)
    at = 0
    for piece in encoded:
        begins[at] = True
        at += len(piece)
    heads = np.flatnonzero(begins)
    lengths = np.diff(heads, append=count)
    tokens = np.full(max_seq_len, padding_id, np.int32)
    tokens[:count] = joined >> np.uint32(1)
    labels = np.full(max_seq_len, IGNORED_LABEL, np.int32)
    labels[:count] = tokens[:count]
    if ignore_first_labels:
        labels[heads] = IGNORED_LABEL
    positions = np.arange(max_seq_len)
    positions[:count] -= np.repeat(heads, lengths)
    if skipped and not restart_positions:
        head = positions[: lengths[0]]
        head += skipped % max_seq_len
        head %= max_seq_len
    if count < max_seq_len:
        lengths = np.append(lengths, max_seq_len - count)
        positions[count:] += int(positions[count - 1]) + 1 - count
        np.minimum(positions, max_seq_len - 1, out=positions)
    return Pack(tokens, labels, positions.astype(np.int32), lengths.astype(np.int32), count)


def stack(packs: Sequence[Pack], max_seq_len: int) -> PackBatch:
    """The packs as rows, in their order."""
    if not packs:
        empty = np.zeros((0, max_seq_len), np.int32)
        return PackBatch(empty, empty, empty, empty, [])
    return PackBatch(
        np.stack([pack.tokens for pack in packs]),
        np.stack([pack.labels for pack in packs]),
        np.stack([pack.input_pos for pack in packs]),
        np.stack([pack.segment_ids for pack in packs]),
        [pack.seq_lens for pack in packs],
    )


def cumulative_lengths(seq_lens: Int32) -> Int32:
    """[3, 2, 1] -> [0, 3, 5, 6], int32; ArgumentError if the sum is over 2^31 - 1, which kernels cannot take."""
    total = int(seq_lens.sum(dtype=np.int64))
    if total >= 2**31:
        raise ArgumentError(f"{total} tokens are too many for int32 cu_seqlens; take fewer packs a batch")
    result = np.zeros(len(seq_lens) + 1, np.int32)
    np.cumsum(seq_lens, out=result[1:])
    return result


def segment_ids(seq_lens: Int32, token_count: int) -> Int32:
    """[3, 2, 1], 5 -> [1, 1, 1, 2, 2, 0]: int32[sum of seq_lens]."""
    ids = np.repeat(np.arange(1, len(seq_lens) + 1, dtype=np.int32), seq_lens)
    ids[token_count:] = 0
    return ids


def block_causal_mask(ids: Int32) -> Bools:
    """Segment ids int32[..., n] -> bool[..., n, n]: true where query i and key j <= i share a segment; of the
    ids 0, padding, only i = j."""
    n = ids.shape[-1]
    same: Bools = ids[..., :, None] == ids[..., None, :]
    same &= (ids != 0)[..., None, :]
    same &= np.tri(n, dtype=np.bool_)
    same |= np.eye(n, dtype=np.bool_)
    return same
