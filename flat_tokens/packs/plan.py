"""Parts that all packing strategies share.

A plan maps the number of a pack to token ranges of the dataset. It is made from seq_starts; no token is read for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flat_tokens.errors import CONVERT_AGAIN, ArgumentError, DatasetError
from flat_tokens.format import Int64, not_rising
from flat_tokens.rows.reader import RowSource, TokenRanges
from flat_tokens.storage.elements import Elements

BLOCK_SEQS = 2**18  # sequences that are planned at a time


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


class Plan(RowSource):
    """The packs of one strategy as numbered rows. Constructors set row_count, the number of packs.

    A sequence, or the part of one that is cut, begins with a start flag in a pack, whatever the stored stream has
    there. The segments of a pack thus follow from its flags and its length, as in any other row.
    """

    is_padded = reads_starts = is_pack = True

    def __init__(self, seq_starts: Elements, max_seq_len: int) -> None:
        self.length = max_seq_len
        self._seq_starts = seq_starts
        self._seq_count = len(seq_starts) - 1
        self._token_count = int(seq_starts.read(self._seq_count, self._seq_count + 1)[0])

    def window_bounds(self) -> Int64:
        """Bounds of the packs that are planned together: int64[windows + 1], from 0 to row_count. By default each pack
        separately."""
        return np.arange(self.row_count + 1)

    @abstractmethod
    def pieces(self, packs: Int64) -> tuple[Int64, Int64, Int64]:
        """The token ranges [starts[i], stops[i]) of some packs, pack by pack, and the number of ranges per pack.

        packs: each in [0, row_count). A range may hold several sequences.
        """

    @abstractmethod
    def report(self) -> PackingReport:
        """Count the tokens and sequences of all packs."""

    def token_ranges(self, rows: Int64) -> TokenRanges:
        """See RowSource."""
        real = np.flatnonzero(rows < self.row_count)
        starts, stops, counts = self.pieces(rows[real])
        before = np.concatenate([[0], np.cumsum(stops - starts)])
        columns = before[:-1] - np.repeat(before[np.cumsum(counts) - counts], counts)
        return TokenRanges(np.repeat(real, counts), columns, starts, stops)

    def _report(self, tokens_used: int, seqs_used: int, seqs_split: int) -> PackingReport:
        lost, seqs_lost = self._token_count - tokens_used, self._seq_count - seqs_used
        return PackingReport(self.row_count, self.length, tokens_used, lost, seqs_used, seqs_split, seqs_lost)


def read_starts(seq_starts: Elements, first: int, stop: int) -> Int64:
    """seq_starts[first : stop + 1] as int64. Raise DatasetError unless they rise."""
    starts = seq_starts.read(first, stop + 1).astype(np.uint64, copy=False).view(np.int64)
    falls = np.flatnonzero(starts[1:] <= starts[:-1])
    if len(falls) or starts[-1] < 0:
        at = int(falls[0]) if len(falls) else max(len(starts) - 2, 0)
        values = starts[at : at + 2].view(np.uint64).tolist()
        what = not_rising(seq_starts.name, first + at + 1, values[-1], values[0])
        raise DatasetError(f"{what}. {CONVERT_AGAIN}")
    return starts


def blocks_of(seq_starts: Elements, block_seqs: int = BLOCK_SEQS) -> Iterator[Int64]:
    """seq_starts in blocks of block_seqs sequences; each block begins with the last entry of the one before."""
    count = len(seq_starts) - 1
    for first in range(0, count, block_seqs):
        yield read_starts(seq_starts, first, min(first + block_seqs, count))


def too_long_error(name: str, index: int, tokens: int, max_seq_len: int) -> ArgumentError:
    """Return the error for a sequence longer than max_seq_len."""
    split = name.partition("/")[0]
    return ArgumentError(
        f"{split}: sequence {index} must have at most max_seq_len = {max_seq_len} tokens (got {tokens}). "
        "Pass split_across_pack=True or a larger max_seq_len."
    )
