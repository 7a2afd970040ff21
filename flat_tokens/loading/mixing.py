"""Batches from several datasets by weight, still a pure function of their step.

Each dataset is shuffled as by a Loader with the same streams, and each stream of the mixture draws from the
streams of the same number. flat_tokens/rows/shares.py says how many of the first n draws of a stream come from each
dataset; the draws of a stretch, PERIOD of them, are in an order that derive_key(seed, 4, stream, stretch) permutes.
Draw n from a dataset is its row n in that stream, so a smaller dataset simply begins its next epoch earlier, and none
of its rows is left out before.

Weights may change at given steps. The draws of entry e of such a schedule, e from 0 on, are counted from its first step
on; where e > 0 it is one part more of the key. What an entry drew is added to what those before it drew, the last
stretch as far as it goes, so that entries that are added behind a step change nothing before it.

Invariant: after any number of whole stretches of an entry a dataset has its exact share of the draws of a stream, to
within 4 rows (one row in a mixture of two datasets), however small its weight; ranks see their part of the same global
batches (tests/flat_tokens/test_mixing.py).
"""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import count_of, integer
from flat_tokens.errors import ArgumentError
from flat_tokens.loading.batch import Batch
from flat_tokens.loading.loader import WINDOW_TOKENS, Loader, block_tokens_of, check_ranks_divide, streams_of
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.ahead import Ahead
from flat_tokens.rows.mixed_rows import MixedRows
from flat_tokens.rows.permutation import derive_key, permute
from flat_tokens.rows.row_cut import RowCut
from flat_tokens.rows.row_order import HostOrder, RowOrder, TooFewRowsError
from flat_tokens.rows.schedule import entries_of
from flat_tokens.rows.shares import Shares
from flat_tokens.rows.steps import MAX_BATCH_SIZE, StepBatches, checked_ranks

PERIOD = 4096  # draws of a stream that are permuted among themselves
LARGEST_DRAW = 2**61  # of a stream: its numbers stay within 64 bits
MIX, MEMBER = 4, 5
AHEAD = 4  # batches
LARGEST_TOKENS = 40 * 2**20  # of all datasets in memory, 4 bytes each

Int64 = npt.NDArray[np.int64]
Draws = tuple[Int64, Int64, Int64]


class Mixture(StepBatches):
    """Batches of rows of several arrays, splits or PackedSequences. weights: shares of the rows, taken exactly;
    positive numbers of any sum, or a schedule [(first_step, weights), ...] from step 0 on, where some may be 0.

    The other arguments are those of Loader, but drop_last: there are no epochs, step goes on without end. So are the
    methods. shuffle_blocks is shared out by weight, in a schedule by the first above 0, at least one each. draws(step)
    says which dataset each row comes from. Memory: 160 MiB for windows at most; the windows of many datasets are read
    in several parts, and each part decodes the zarr chunks of the window again. ArgumentError for values outside their
    ranges."""

    _own = (*StepBatches._own, "_rows", "_stretch", "_before", "_cut")

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
        entries = entries_of("weights", weights)
        for _, values in entries:
            weight_count = count_of("weights", values)
            if not array_count or weight_count != array_count:
                raise ArgumentError(
                    f"a mixture needs a weight for each array, got {weight_count} for {array_count}"
                )
        if options.pop("drop_last", True) is not True:
            raise ArgumentError("drop_last=False is for a Loader: a mixture has no epochs to end")
        if shuffle_blocks is not None:
            shuffle_blocks = integer("shuffle_blocks", shuffle_blocks, 1)
        self._entries = [(first, Shares(values, may_be_zero=len(entries) > 1)) for first, values in entries]
        self.shares = self._entries[0][1]
        self.batch_size = integer("batch_size", batch_size, 1, MAX_BATCH_SIZE)
        self.rank, self.world_size = checked_ranks(rank, world_size)
        block_tokens = block_tokens_of(arrays[0], options.get("block_tokens"))
        streams = streams_of(arrays[0], self.batch_size, streams, block_tokens)
        # Of one batch: only how its rows are dealt to streams and hosts is asked for.
        batch = RowOrder.create(self.batch_size, self.batch_size, streams, 1, 1, integer("seed", seed))
        check_ranks_divide(self.batch_size, self.world_size)
        self.seed, self.streams = batch.seed, batch.streams
        self.host = HostOrder.of(batch, self.rank, self.world_size)
        self.rows_per_batch = self.host.rows_per_batch
        self._per_stream = self.batch_size // self.streams
        self._first_draws = [first * self._per_stream for first, _ in self._entries]
        # Of each dataset the first entry that draws from it, if any does: it decides on the windows, so that the order
        # does not follow from later ones, which may be changed.
        self._begun_in = [
            next((entry for entry, (_, shares) in enumerate(self._entries) if shares.fractions[i]), None)
            for i in range(array_count)
        ]
        of_windows = [
            0 if entry is None else self._entries[entry][1].fractions[i]
            for i, entry in enumerate(self._begun_in)
        ]
        self.members = [
            self._member(
                number, array, seq_len, max(1, round(_blocks(array, shuffle_blocks) * share)), options
            )
            for number, (array, share) in enumerate(zip(arrays, of_windows, strict=True))
        ]
        first = self.members[0]
        self.seq_len, self.dtype, self.start_id = first.seq_len, first.dtype, first.start_id
        self._begin()

    def _member(
        self,
        number: int,
        array: FlatTokensArray | PackedSequences,
        seq_len: int,
        shuffle_blocks: int,
        options: dict[str, Any],
    ) -> Loader:
        key, streams = derive_key(self.seed, MEMBER, number), self.streams
        try:
            return Loader(
                array, seq_len, streams, key, streams=streams, shuffle_blocks=shuffle_blocks, **options
            )
        except TooFewRowsError as error:
            counts = (count for count in range(error.row_count, 0, -1) if self.batch_size % count == 0)
            fewer = "".join(f"streams={count}, " for count in itertools.islice(counts, 1))
            raise ArgumentError(
                f"arrays[{number}] has {error.row_count} rows, fewer than the {streams} streams of the mixture; take "
                f"{fewer}a smaller seq_len, or leave it out"
            ) from None

    def _forget(self) -> None:
        super()._forget()
        first, stop = self.host.first_stream, self.host.stop_stream  # members have one row a stream
        readers = [member.new_windows(HostOrder(member.order, first, stop)) for member in self.members]
        orders = [member.order for member in self.members]
        self._rows = MixedRows(readers, orders, first, stop, LARGEST_TOKENS)
        self._stretch = functools.lru_cache(maxsize=4 * self.streams)(self._stretch_of)
        self._before = functools.lru_cache(maxsize=None)(self._drawn_before)
        self._cut: RowCut | None = None

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
        for number, (member, entry) in enumerate(zip(self.members, self._begun_in, strict=True)):
            of_member = member.identity()
            if entry is None or (entry and self._entries[entry][0] >= step):  # nothing was drawn from it
                del of_member["window_blocks"]
            found |= {f"datasets[{number}].{name}": value for name, value in of_member.items()}
        return found

    def draws(self, step: int) -> Draws:
        """For each row of this rank's batch: the number of its dataset, its stream and its place in that
        dataset's stream; int64[rows] each."""
        step = integer("step", step, 0)
        self._check_steps(step + 1)
        first, stop = self.host.first_stream, self.host.stop_stream
        shape = (stop - first, self._per_stream)
        chosen, places = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        begin, end = step * self._per_stream, (step + 1) * self._per_stream
        for entry, stretch, low, high in self._stretches(begin, end):
            inside = slice(low - self._begin_of(entry, stretch), high - self._begin_of(entry, stretch))
            for stream in range(first, stop):
                numbers, found = self._stretch(entry, stream, stretch)
                chosen[stream - first, low - begin : high - begin] = numbers[inside]
                places[stream - first, low - begin : high - begin] = found[inside]
        streams = np.repeat(np.arange(first, stop), self._per_stream)
        before = first * self._per_stream
        own = slice(self.host.first_row - before, self.host.stop_row - before)
        return chosen.reshape(-1)[own], streams[own], places.reshape(-1)[own]

    def _begin_of(self, entry: int, stretch: int) -> int:
        return self._first_draws[entry] + stretch * PERIOD

    def _stretches(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """(entry, stretch, low, high): the draws [low, high) of [begin, end) that lie in one stretch."""
        borders = [*self._first_draws, end]
        for entry, (first, stop) in enumerate(itertools.pairwise(borders)):
            low, stop = max(begin, first), min(end, stop)
            while low < stop:
                stretch = (low - first) // PERIOD
                high = min(stop, self._begin_of(entry, stretch + 1))
                yield entry, stretch, low, high
                low = high

    def _stretch_of(self, entry: int, stream: int, stretch: int) -> tuple[Int64, Int64]:
        """Of each draw of a stretch of an entry: the dataset, and how many draws from it came before in the stream."""
        key = derive_key(self.seed, MIX, stream, stretch, *([entry] if entry else []))
        tickets = permute(np.arange(PERIOD), PERIOD, key)
        shares = self._entries[entry][1]
        before, after = (
            np.array(shares.drawn(draws, stream, self.streams), dtype=np.int64)
            for draws in (stretch * PERIOD, (stretch + 1) * PERIOD)
        )
        numbers = np.searchsorted(np.cumsum(after - before), tickets, side="right")
        firsts = before + self._before(entry, stream)
        places = np.empty(PERIOD, dtype=np.int64)
        for number in np.flatnonzero(after > before).tolist():
            here = np.flatnonzero(numbers == number)
            places[here] = np.arange(firsts[number], firsts[number] + len(here))
        return numbers, places

    def _drawn_before(self, entry: int, stream: int) -> Int64:
        """How many draws from each dataset the entries before this one made in a stream."""
        if not entry:
            return np.zeros(len(self.members), dtype=np.int64)
        draws = self._first_draws[entry] - self._first_draws[entry - 1]
        stretch, rest = divmod(draws, PERIOD)
        whole = self._entries[entry - 1][1].drawn(stretch * PERIOD, stream, self.streams)
        last = self._stretch_of(entry - 1, stream, stretch)[0][:rest]
        found: Int64 = self._before(entry - 1, stream) + np.array(whole, dtype=np.int64)
        return found + np.bincount(last, minlength=len(self.members))

    # -- reading

    def _check_steps(self, stop: int) -> None:
        if stop > LARGEST_DRAW // self._per_stream:
            raise ArgumentError(
                f"step must be at most {LARGEST_DRAW // self._per_stream - 1}, got {stop - 1}"
            )

    def _batch(self, step: int, follows: bool) -> Batch:
        if self._cut is None:
            self._cut = self._new_cut()
        return self._rows.batch(*self.draws(step), follows, self._cut)

    def _run(self, step: int, stop: int | None, ahead: Ahead) -> Iterator[Batch]:
        steps = itertools.count(step) if stop is None else iter(range(step, stop))

        def begin(at: int) -> Any:
            return ahead.begin(functools.partial(self._locked_batch, at, at > step))

        pending = collections.deque(map(begin, itertools.islice(steps, AHEAD)))
        while pending:
            batch = pending.popleft().result()
            pending.extend(map(begin, itertools.islice(steps, 1)))
            yield batch
            del batch

    def _locked_batch(self, step: int, follows: bool) -> Batch:
        with self._lock:
            return self._batch(step, follows)

    @property
    def is_masked(self) -> bool:
        """See StepBatches."""
        return any(member.is_masked for member in self.members)

    @property
    def may_pad(self) -> bool:
        """See StepBatches."""
        return any(member.may_pad for member in self.members)

    def _largest_id(self) -> int:
        return max(member.array.max_token_id for member in self.members)


def _blocks(array: FlatTokensArray | PackedSequences, shuffle_blocks: int | None) -> int:
    """How many blocks are shuffled among themselves: a Loader's default where it is not said."""
    if shuffle_blocks is not None:
        return shuffle_blocks
    return 16 if not isinstance(array, PackedSequences) else max(1, WINDOW_TOKENS // array.block_tokens)
