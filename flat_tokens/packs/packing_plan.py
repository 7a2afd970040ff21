"""What the ways of packing share: reading seq_starts with its rules checked, the pieces of a pack, the account
of a plan.

A plan maps the number of a pack to pieces, ranges of tokens of the dataset, from seq_starts alone; no token is
read for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import CONVERT_AGAIN, ArgumentError, DatasetError
from flat_tokens.format import not_rising

Int64 = npt.NDArray[np.int64]


class Starts(Protocol):
    """What the planners need of seq_starts (flat_tokens.storage.elements.Elements has it)."""

    @property
    def name(self) -> str: ...

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int, /) -> npt.NDArray[np.uint64]: ...


class Pieces(NamedTuple):
    """The ranges of tokens [starts[i], stops[i]) that make some packs, pack by pack, in the order of each. A range may
    hold several sequences. counts: how many ranges each pack has; int64 all."""

    starts: Int64
    stops: Int64
    counts: Int64


@dataclass(frozen=True)
class PackingReport:
    """What becomes of a dataset's tokens and sequences in its packs.

    tokens_used + tokens_lost and seqs_used + seqs_lost are what the dataset has; tokens_used + tokens_padded
    fill the packs. seqs_split counts the sequences that are cut, be it between packs or at the end of the last
    one; seqs_lost those of which no token is used."""

    pack_count: int
    max_seq_len: int
    tokens_used: int
    tokens_lost: int
    seqs_used: int
    seqs_split: int
    seqs_lost: int

    @property
    def tokens_padded(self) -> int:
        """How many tokens of the packs are padding."""
        return self.pack_count * self.max_seq_len - self.tokens_used

    @property
    def padded_fraction(self) -> float:
        """The part of the packs' tokens that is padding, in [0, 1); 0 without packs."""
        return self.tokens_padded / (self.pack_count * self.max_seq_len) if self.pack_count else 0.0

    def __str__(self) -> str:
        return (
            f"{self.pack_count:,} packs of {self.max_seq_len:,}: {self.tokens_used:,} tokens used, "
            f"{self.tokens_padded:,} padded ({self.padded_fraction:.3%}), {self.tokens_lost:,} lost; "
            f"{self.seqs_used:,} sequences used, {self.seqs_split:,} split, {self.seqs_lost:,} lost"
        )


class Plan(Protocol):
    """A way of packing, planned."""

    @property
    def pack_count(self) -> int: ...

    def window_bounds(self) -> Int64:
        """Where the packs that are planned together begin and the last end: int64[windows + 1], from 0 to
        pack_count."""

    def pieces(self, packs: Int64) -> Pieces:
        """What some packs, in [0, pack_count), are made of."""

    def skipped(self, packs: Int64) -> Int64:
        """How many tokens the first sequence of each pack has in front of the pack; above 0 only where it is cut."""

    def report(self) -> PackingReport:
        """The account of all packs."""


def read_starts(seq_starts: Starts, first: int, stop: int) -> Int64:
    """seq_starts[first : stop + 1] as int64, after a check that they rise; DatasetError names the first that does
    not."""
    starts = seq_starts.read(first, stop + 1).astype(np.uint64, copy=False).view(np.int64)
    falls = np.flatnonzero(starts[1:] <= starts[:-1])
    if len(falls) or starts[-1] < 0:
        at = int(falls[0]) if len(falls) else max(len(starts) - 2, 0)
        values = starts[at : at + 2].view(np.uint64).tolist()
        what = not_rising(seq_starts.name, first + at + 1, values[-1], values[0])
        raise DatasetError(f"{what}. {CONVERT_AGAIN}")
    return starts


def too_long_error(name: str, index: int, tokens: int, max_seq_len: int) -> ArgumentError:
    """What a sequence that fits no pack is told by."""
    split = name.partition("/")[0]
    return ArgumentError(
        f"{split}: sequence {index} must have at most max_seq_len = {max_seq_len} tokens (got {tokens}). "
        "Pass split_across_pack=True or a larger max_seq_len."
    )
