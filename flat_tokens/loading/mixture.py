"""Batches from several datasets by weight, still a pure function of their step.

Each dataset is shuffled as by a Loader with the same streams, and each stream of the mixture draws from the streams of
the same number. flat_tokens/order/shares.py says how many of the first n draws of a stream come from each dataset. The
draws are divided into periods of PERIOD draws; derive_key(seed, 4, stream, period) permutes the order within a period.
Draw n from a dataset is its row n in that stream, so a smaller dataset begins its next epoch earlier, and none of its
rows is left out before.

Weights may change at given steps. The draws of entry e of such a schedule, e from 0 on, are counted from its first
step; where e > 0, e is a further part of the key. Entries continue the counts of the entries before them. An entry
that is added after a step therefore changes nothing before that step.

Invariant: after any number of whole periods of an entry, a dataset has its exact share of the draws of a stream, to
within 4 rows (one row in a mixture of two datasets), however small its weight.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import count_of, flag, integer, invalid
from flat_tokens.errors import ArgumentError
from flat_tokens.format import Int64
from flat_tokens.loading.loader import Loader, block_rows_of, default_shuffle_blocks
from flat_tokens.loading.steps import MAX_BATCH_SIZE, StepBatches, check_streams
from flat_tokens.order.permutation import LARGEST_SEED, derive_key, permute
from flat_tokens.order.row_order import Draws, TooFewRowsError, stream_count
from flat_tokens.order.shares import Shares
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray

PERIOD = 4096  # draws of a stream that are permuted among themselves
MIX, MEMBER = 4, 5  # parts of keys


class Mixture(StepBatches):
    """Batches with rows of several arrays in exact proportions.

    arrays: list of splits such as dataset.train, or of PackedSequences.
    weights: one positive number per array, of any sum; the shares of the rows. Or a schedule [(first_step, weights),
        ...] with steps that rise from 0, where single weights may be 0.
    seq_len: tokens per row, at least 1; for packs, their max_seq_len.
    batch_size: rows per global batch, over all ranks, at least 1.
    seed: integer in [0, 2^64) (default: 0).
    rank, world_size: as for Loader; world_size must divide batch_size.
    streams: number of independent shuffled streams; a divisor of batch_size. Every array needs one row per stream
        (default: the largest divisor up to 64, fewer for small datasets).
    shuffle_blocks: blocks in memory, shared by weight, at least one per stream (default: as for Loader). A schedule
        shares them by the first weight above 0 of each array.
    **options: further arguments of Loader, such as block_tokens, dtype, packed or shuffle. drop_last must stay True.

    A Mixture has no epochs: steps continue without end. draws(step) returns the array of each row. Other methods work
    as in Loader. Raise ArgumentError for values outside their ranges.
    """

    _own = (*StepBatches._own, "_period", "_before")

    def __init__(
        self,
        arrays: Sequence[FlatTokensArray | PackedSequences],
        weights: Sequence[Any],
        seq_len: int,
        batch_size: int,
        seed: int = 0,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        streams: int | None = None,
        shuffle_blocks: int | None = None,
        **options: Any,
    ) -> None:
        array_count = count_of("arrays", arrays)
        if not array_count:
            raise ArgumentError("arrays: must have at least one array")
        entries = entries_of("weights", weights)
        for _, values in entries:
            weight_count = count_of("weights", values)
            if weight_count != array_count:
                raise invalid(
                    "weights", f"must have one entry for each of {array_count} arrays", weight_count
                )
        if options.pop("drop_last", True) is not True:
            raise ArgumentError("drop_last: must be True for a Mixture, which has no epochs")
        self._entries = [(first, Shares(values, may_be_zero=len(entries) > 1)) for first, values in entries]
        self.shares = self._entries[0][1]
        self.batch_size = integer("batch_size", batch_size, 1, MAX_BATCH_SIZE)
        self._set_ranks(rank, world_size, drop_last=True)
        self.seed = integer("seed", seed, 0, LARGEST_SEED)
        # The first entry that draws from a dataset decides on its windows: later entries, which may be changed, must
        # not change the order.
        self._first_entry = [
            next((entry for entry, (_, shares) in enumerate(self._entries) if shares.fractions[i]), None)
            for i in range(array_count)
        ]
        self.members = self._new_members(
            arrays, integer("seq_len", seq_len, 1), streams, shuffle_blocks, options
        )
        self.streams = self.members[0].batch_size
        self._per_stream = self.batch_size // self.streams
        self._first_draws = [first * self._per_stream for first, _ in self._entries]
        first = self.members[0]
        self.seq_len, self.dtype, self.start_id = first.seq_len, first.dtype, first.start_id
        self._reset()

    def _new_members(
        self,
        arrays: Sequence[FlatTokensArray | PackedSequences],
        seq_len: int,
        streams: int | None,
        shuffle_blocks: int | None,
        options: dict[str, Any],
    ) -> list[Loader]:
        """A Loader of each dataset. Its batches have one row per stream."""
        shuffle = flag("shuffle", options.get("shuffle", True))
        if shuffle_blocks is not None:
            shuffle_blocks = integer("shuffle_blocks", shuffle_blocks, 1)
        if streams is not None:
            check_streams(streams, self.batch_size)
        blocks = [
            shuffle_blocks
            or default_shuffle_blocks(
                block_rows_of(array, seq_len, options.get("block_tokens")), seq_len, self.batch_size, shuffle
            )
            for array in arrays
        ]
        shares = [
            0 if entry is None else self._entries[entry][1].fractions[i]
            for i, entry in enumerate(self._first_entry)
        ]
        own_blocks = _divided(blocks, shares)
        limit = sum(_divided(blocks, self.shares.fractions)) // len(blocks)
        count = 1 if not shuffle else streams or stream_count(self.batch_size, limit)
        members: list[Loader] = []
        while len(members) < len(arrays):
            number = len(members)
            member_options = {**options, "streams": count, "shuffle_blocks": own_blocks[number]}
            key = derive_key(self.seed, MEMBER, number)
            try:
                members.append(Loader(arrays[number], seq_len, count, key, **member_options))
            except TooFewRowsError as error:
                fewer = stream_count(self.batch_size, error.row_count)
                if streams is not None or error.row_count < fewer:
                    raise ArgumentError(
                        f"arrays[{number}]: must have at least one row per stream, {count} (got {error.row_count}). "
                        "Use fewer streams or a smaller seq_len, or omit this array."
                    ) from None
                members, count = [], fewer
        return members

    def _reset(self) -> None:
        super()._reset()
        self._period = functools.lru_cache(maxsize=4)(self._draws_of_period)
        self._before = functools.lru_cache(maxsize=None)(self._drawn_before)

    def __repr__(self) -> str:
        return (
            f"<Mixture of {len(self.members)} datasets: batches of {self.batch_size} x {self.seq_len}, rank "
            f"{self.rank} of {self.world_size}>"
        )

    def identity(self, step: int = 0) -> dict[str, Any]:
        """See StepBatches.identity."""
        found: dict[str, Any] = {
            "seq_len": self.seq_len,
            "batch_size": self.batch_size,
            "streams": self.streams,
            "seed": self.seed,
            "weights": [
                [first, [str(share) for share in shares.fractions]]
                for first, shares in self._entries
                if first < step or not first
            ],
        }
        for number, (member, entry) in enumerate(zip(self.members, self._first_entry, strict=True)):
            of_member = member.identity()
            if entry is None or (entry and self._entries[entry][0] >= step):  # nothing was drawn from it
                del of_member["lanes"], of_member["window_blocks"]
            found |= {f"datasets[{number}].{name}": value for name, value in of_member.items()}
        return found

    def draws(self, step: int) -> tuple[Int64, Int64, Int64]:
        """The draw of each row of this rank's batch; int64[rows] each.

        Return the index of its dataset, its stream, and how many draws from the dataset came before in that stream.
        """
        step = integer("step", step, 0)
        self._check_steps(step + 1)
        found = self._draws(step, 1)
        return found.members, found.streams, found.draws

    def _draws(self, step: int, count: int) -> Draws:
        """See StepBatches."""
        periods = self._periods(step * self._per_stream, (step + count) * self._per_stream)
        found = [self._period(entry, period)[..., low:high] for entry, period, low, high in periods]
        own = self._own_streams  # [member or draw, stream, step, row of the stream]
        of_steps = np.concatenate(found, axis=2).reshape(2, len(own), count, self._per_stream)
        streams = np.broadcast_to(np.array(own)[:, None, None], of_steps.shape[1:])
        first = own.start * self._per_stream
        rows = slice(self._first_row - first, self._stop_row - first)
        members, draws, of_streams = (
            values.swapaxes(0, 1).reshape(count, -1)[:, rows].reshape(-1) for values in (*of_steps, streams)
        )
        return Draws.of([member.order for member in self.members], members, of_streams, draws)

    @property
    def _own_streams(self) -> range:
        """The streams that this rank draws from."""
        return range(self._first_row // self._per_stream, -(-self._stop_row // self._per_stream))

    def _periods(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """(entry, period, low, high): the draws [begin, end) of a stream are draws [low, high) of these periods."""
        for entry, (first, stop) in enumerate(itertools.pairwise([*self._first_draws, end])):
            low, stop = max(begin, first), min(end, stop)
            while low < stop:
                period, inside = divmod(low - first, PERIOD)
                count = min(PERIOD - inside, stop - low)
                yield entry, period, inside, inside + count
                low += count

    def _draws_of_period(self, entry: int, period: int) -> Int64:
        """`_of_stream` for all own streams: int64[2, own streams, PERIOD]."""
        return np.stack([self._of_stream(entry, stream, period) for stream in self._own_streams], axis=1)

    def _of_stream(self, entry: int, stream: int, period: int) -> Int64:
        """The dataset of each draw of a period, and how many draws from it came before; int64[2, PERIOD]."""
        key = derive_key(self.seed, MIX, stream, period, *([entry] if entry else []))
        tickets = permute(np.arange(PERIOD), PERIOD, key)
        shares = self._entries[entry][1]
        before, after = (
            np.array(shares.drawn(draws, stream, self.streams), dtype=np.int64)
            for draws in (period * PERIOD, (period + 1) * PERIOD)
        )
        members = np.searchsorted(np.cumsum(after - before), tickets, side="right")
        firsts = before + self._before(entry, stream)
        draws = np.empty(PERIOD, dtype=np.int64)
        for member in np.flatnonzero(after > before).tolist():
            here = np.flatnonzero(members == member)
            draws[here] = np.arange(firsts[member], firsts[member] + len(here))
        return np.stack([members, draws])

    def _drawn_before(self, entry: int, stream: int) -> Int64:
        """How many draws from each dataset the entries before this one made in a stream."""
        if not entry:
            return np.zeros(len(self.members), dtype=np.int64)
        for earlier in range(entry):  # each adds to the one before it, without a deep recursion
            self._before(earlier, stream)
        draws = self._first_draws[entry] - self._first_draws[entry - 1]
        period, rest = divmod(draws, PERIOD)
        whole = self._entries[entry - 1][1].drawn(period * PERIOD, stream, self.streams)
        last = self._of_stream(entry - 1, stream, period)[0][:rest]
        found: Int64 = self._before(entry - 1, stream) + np.array(whole, dtype=np.int64)
        return found + np.bincount(last, minlength=len(self.members))


def entries_of(name: str, value: Any) -> list[tuple[int, Any]]:
    """A schedule [(first_step, item), ...], or one value for all steps as [(0, value)].

    Raise ArgumentError unless the steps rise from 0.
    """
    is_schedule = isinstance(value, list | tuple) and all(
        isinstance(entry, list | tuple) and len(entry) == 2 for entry in value
    )
    if not is_schedule or not value:
        return [(0, value)]
    entries = [(integer(f"first step of {name}", first, 0), item) for first, item in value]
    firsts = [first for first, _ in entries]
    if firsts[0] or sorted(set(firsts)) != firsts:
        raise invalid(name, "steps of a schedule must rise from 0", firsts)
    return entries


def _divided(blocks: Sequence[int], shares: Sequence[Any]) -> list[int]:
    """The blocks of each dataset in memory, by its share."""
    return [max(1, round(count * share)) for count, share in zip(blocks, shares, strict=True)]
