"""Parts that all packing strategies share.

A plan maps the number of a pack to token ranges of the dataset. It is made from seq_starts; no token is read for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import CONVERT_AGAIN, ArgumentError, DatasetError
from flat_tokens.format import Int64, not_rising

BLOCK_SEQS = 2**18  # sequences that are planned at a time


class Starts(Protocol):
    """The part of seq_starts that plans use; see flat_tokens.storage.elements.Elements."""

    @property
    def name(self) -> str: ...

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int, /) -> npt.NDArray[np.uint64]: ...


class Pieces(NamedTuple):
    """The token ranges [starts[i], stops[i]) of some packs, pack by pack, in order; int64 all.

    counts: ranges per pack. A range may hold several sequences.
    """

    starts: Int64
    stops: Int64
    counts: Int64


@dataclass(frozen=True)
class PackingReport:
    """Counts of the tokens and sequences of a dataset in its packs.

    tokens_used + tokens_lost and seqs_used + seqs_lost are the counts of the dataset. tokens_used + tokens_padded fill
    the packs.

    seqs_split: sequences that are cut, between packs or at the end of the last pack.
    seqs_lost: sequences without a token in a pack.
    """

    pack_count: int
    max_seq_len: int
    tokens_used: int
    tokens_lost: int
    seqs_used: int
    seqs_split: int
    seqs_lost: int

    @property
    def tokens_padded(self) -> int:
        """Tokens of padding."""
        return self.pack_count * self.max_seq_len - self.tokens_used

    @property
    def padded_fraction(self) -> float:
        """The share of padding, in [0, 1); 0 without packs."""
        return self.tokens_padded / (self.pack_count * self.max_seq_len) if self.pack_count else 0.0

    def __str__(self) -> str:
        return (
            f"{self.pack_count:,} packs of {self.max_seq_len:,}: {self.tokens_used:,} tokens used, "
            f"{self.tokens_padded:,} padded ({self.padded_fraction:.3%}), {self.tokens_lost:,} lost; "
            f"{self.seqs_used:,} sequences used, {self.seqs_split:,} split, {self.seqs_lost:,} lost"
        )


class Plan(Protocol):
    """The packs of one strategy."""

    @property
    def pack_count(self) -> int: ...

    def window_bounds(self) -> Int64:
        """Bounds of the packs that are planned together: int64[windows + 1], from 0 to pack_count."""

    def pieces(self, packs: Int64) -> Pieces:
        """The token ranges of some packs, each in [0, pack_count)."""

    def report(self) -> PackingReport:
        """Count the tokens and sequences of all packs."""


def read_starts(seq_starts: Starts, first: int, stop: int) -> Int64:
    """seq_starts[first : stop + 1] as int64. Raise DatasetError unless they rise."""
    starts = seq_starts.read(first, stop + 1).astype(np.uint64, copy=False).view(np.int64)
    falls = np.flatnonzero(starts[1:] <= starts[:-1])
    if len(falls) or starts[-1] < 0:
        at = int(falls[0]) if len(falls) else max(len(starts) - 2, 0)
        values = starts[at : at + 2].view(np.uint64).tolist()
        what = not_rising(seq_starts.name, first + at + 1, values[-1], values[0])
        raise DatasetError(f"{what}. {CONVERT_AGAIN}")
    return starts


def blocks_of(seq_starts: Starts) -> Iterator[Int64]:
    """seq_starts in blocks of BLOCK_SEQS sequences; each block begins with the last entry of the one before."""
    count = len(seq_starts) - 1
    for first in range(0, count, BLOCK_SEQS):
        yield read_starts(seq_starts, first, min(first + BLOCK_SEQS, count))


def too_long_error(name: str, index: int, tokens: int, max_seq_len: int) -> ArgumentError:
    """Return the error for a sequence longer than max_seq_len."""
    split = name.partition("/")[0]
    return ArgumentError(
        f"{split}: sequence {index} must have at most max_seq_len = {max_seq_len} tokens (got {tokens}). "
        "Pass split_across_pack=True or a larger max_seq_len."
    )
