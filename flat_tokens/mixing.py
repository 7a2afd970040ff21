"""Batches from several datasets by weight, still a pure function of their step.

Each dataset is shuffled as by a Loader with the same streams, and each stream of the mixture draws from the
streams of the same number. flat_tokens/rows/shares.py says how many of the first n draws of a stream come from each
dataset; the draws of a stretch, PERIOD of them, are in an order that derive_key(seed, 4, stream, stretch) permutes.
Draw n from a dataset is its row n in that stream, so a smaller dataset simply begins its next epoch earlier, and none
of its rows is left out before.

Invariant: after any number of whole stretches a dataset has its exact share of the draws of a stream, to within 4 rows
(one row in a mixture of two datasets), however small its weight; hosts see their part of the same global batches
(tests/flat_tokens/test_mixing.py).
"""

from __future__ import annotations

import collections
import functools
import itertools
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import count_of, flag, integer
from flat_tokens.batch import Batch
from flat_tokens.errors import ArgumentError
from flat_tokens.loader import Loader, steps_range
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.ahead import Ahead, run_ahead
from flat_tokens.rows.permutation import derive_key, permute
from flat_tokens.rows.row_cut import RowCut
from flat_tokens.rows.row_order import HostOrder, WindowId
from flat_tokens.rows.shares import Shares
from flat_tokens.rows.window_steps import Window

PERIOD = 4096  # draws of a stream that are permuted among themselves
LARGEST_DRAW = 2**61  # of a stream: its numbers stay within 64 bits
MIX, MEMBER = 4, 5
AHEAD = 4  # batches: 2.3 MiB with 64 x 1,024
KEPT_WINDOWS = 2  # of each dataset: streams reach the next one at slightly different steps

Int64 = npt.NDArray[np.int64]


class Mixture:
    """Batches of rows of several arrays. weights: positive, of any sum; shares of the rows, taken exactly.

    The other arguments are those of Loader, and so are batch(step), from_step(step) and rows_per_batch. There
    are no epochs: step goes on without end. shuffle_blocks is shared out by weight, at least one each.
    draws(step) says which dataset each row comes from. ArgumentError for values outside their ranges."""

    def __init__(
        self,
        arrays: Sequence[FlatTokensArray],
        weights: Sequence[float],
        seq_len: int,
        batch_size: int,
        seed: int = 0,
        *,
        host_index: int = 0,
        host_count: int = 1,
        streams: int | None = None,
        shuffle_blocks: int = 16,
        **options: Any,
    ) -> None:
        array_count, weight_count = count_of("arrays", arrays), count_of("weights", weights)
        if not array_count or weight_count != array_count:
            raise ArgumentError(
                f"a mixture needs a weight for each array, got {weight_count} for {array_count}"
            )
        shuffle_blocks = integer("shuffle_blocks", shuffle_blocks, 1)
        self.shares = Shares(weights)
        # Only to choose and check the streams as a Loader does.
        hosts: dict[str, Any] = {"host_index": host_index, "host_count": host_count}
        probe = Loader(arrays[0], seq_len, batch_size, seed, streams=streams, **hosts, **options)
        self.seed = probe.order.seed
        self.batch_size = probe.batch_size
        self.streams = probe.order.streams
        self.host = probe.host
        self.rows_per_batch = probe.rows_per_batch
        self._per_stream = self.batch_size // self.streams
        self.members = [
            Loader(
                array,
                seq_len,
                self.streams,
                derive_key(self.seed, MEMBER, number),
                streams=self.streams,
                shuffle_blocks=max(1, round(shuffle_blocks * share)),
                **options,
            )
            for number, (array, share) in enumerate(zip(arrays, self.shares.fractions, strict=True))
        ]
        self._forget()
        _MIXTURES.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[OrderedDict[WindowId, Window]] = [OrderedDict() for _ in self.members]
        first, stop = self.host.first_stream, self.host.stop_stream  # members have one row a stream
        self._readers = [member.new_windows(HostOrder(member.order, first, stop)) for member in self.members]
        self._next_step = -1
        self._cuts = [RowCut(self.members[0].seq_len, self.members[0].dtype) for _ in range(2)]
        self._stretch = functools.lru_cache(maxsize=4 * self.streams)(self._stretch_of)

    def __getstate__(self) -> dict[str, Any]:
        own = ("_lock", "_kept", "_readers", "_next_step", "_cuts", "_stretch")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()
        _MIXTURES.add(self)

    def draws(self, step: int) -> tuple[Int64, Int64, Int64]:
        """For each row of this host's batch: the number of its dataset, its stream and its place in that
        dataset's stream; int64[rows_per_batch] each."""
        step = integer("step", step, 0)
        if step > LARGEST_DRAW // self._per_stream:
            raise ArgumentError(f"step must be at most {LARGEST_DRAW // self._per_stream}, got {step}")
        first, stop = self.host.first_stream, self.host.stop_stream
        shape = (stop - first, self._per_stream)
        chosen, places = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        begin, end = step * self._per_stream, (step + 1) * self._per_stream
        for stretch in range(begin // PERIOD, (end - 1) // PERIOD + 1):
            low, high = max(begin, stretch * PERIOD), min(end, (stretch + 1) * PERIOD)
            inside, here = (
                slice(low - stretch * PERIOD, high - stretch * PERIOD),
                slice(low - begin, high - begin),
            )
            for stream in range(first, stop):
                numbers, found = self._stretch(stream, stretch)
                chosen[stream - first, here] = numbers[inside]
                places[stream - first, here] = found[inside]
        streams = np.repeat(np.arange(first, stop), self._per_stream)
        before = first * self._per_stream
        own = slice(self.host.first_row - before, self.host.stop_row - before)
        return chosen.reshape(-1)[own], streams[own], places.reshape(-1)[own]

    def batch(self, step: int) -> Batch:
        """The batch of a step, step >= 0; see Loader.batch."""
        chosen, streams, places = self.draws(step)
        with self._lock:
            follows = step == self._next_step
            self._next_step = step + 1
            inputs, targets, is_start = self._cuts[0].take(self.rows_per_batch)
            lengths = np.zeros(self.rows_per_batch, dtype=np.int32)
            is_padded = False
            for number in range(len(self.members)):
                here = np.flatnonzero(chosen == number)
                for source, rows, at in self._found(number, streams[here], places[here], follows):
                    to = here[at]
                    part = [array[: len(to)] for array in self._cuts[1].take(self.rows_per_batch)]
                    source.cut_into(rows, *part)
                    inputs[to], targets[to], is_start[to] = part
                    if source.lengths is not None:
                        lengths[to] = source.lengths[rows]
                        is_padded = True
            return Batch(inputs, targets, is_start, lengths if is_padded else None)

    def from_step(
        self, step: int, stop: int | None = None, *, prefetch: bool | None = None
    ) -> Iterator[Batch]:
        """The batches of the steps [step, stop), without end if stop is None. prefetch: a thread makes the next
        ones meanwhile, AHEAD at most; by default where the process may use more than one processor."""
        prefetch = None if prefetch is None else flag("prefetch", prefetch)
        step, stop = steps_range(step, stop)
        return run_ahead(lambda at, ahead: self._run(at, stop, ahead), step, prefetch)

    def _run(self, step: int, stop: int | None, ahead: Ahead) -> Iterator[Batch]:
        steps = itertools.count(step) if stop is None else iter(range(step, stop))
        pending = collections.deque(
            ahead.begin(functools.partial(self.batch, at)) for at in itertools.islice(steps, AHEAD)
        )
        while pending:
            batch = pending.popleft().result()
            for at in itertools.islice(steps, 1):
                pending.append(ahead.begin(functools.partial(self.batch, at)))
            yield batch
            del batch

    def _found(
        self, number: int, streams: Int64, places: Int64, follows: bool
    ) -> Iterator[tuple[Window, Int64, Int64]]:
        """(window, rows, at): rows of a window of a dataset, which are those asked for at places[at] of
        streams[at]."""
        first_stream, stop_stream = self.host.first_stream, self.host.stop_stream
        kept, order, reader = self._kept[number], self.members[number].order, self._readers[number]
        inside = places % order.steps_per_epoch
        numbers = places // order.steps_per_epoch * order.steps_per_epoch + inside // order.window_steps
        for wanted in np.unique(numbers).tolist():  # one window, seldom two
            at = np.flatnonzero(numbers == wanted)
            window = order.window_at(int(places[at[0]]))
            steps, slots = inside[at] - window.first_step, streams[at] - first_stream
            source = kept.get(window)
            if source is None and follows:
                while len(kept) >= KEPT_WINDOWS:
                    kept.popitem(last=False)
                source = kept[window] = reader.read_window(window)
            if source is None:
                rows = order.window_order(window, first_stream, stop_stream)[steps, slots, 0]
                yield reader.read_rows(rows), np.arange(len(rows)), at
            else:
                yield source, steps * (stop_stream - first_stream) + slots, at

    def _stretch_of(self, stream: int, stretch: int) -> tuple[Int64, Int64]:
        """Of each draw of a stretch: the dataset, and how many draws from it came before in the stream."""
        key = derive_key(self.seed, MIX, stream, stretch)
        tickets = permute(np.arange(PERIOD), PERIOD, key)
        before, after = (
            np.array(self.shares.drawn(draws, stream, self.streams), dtype=np.int64)
            for draws in (stretch * PERIOD, (stretch + 1) * PERIOD)
        )
        numbers = np.searchsorted(np.cumsum(after - before), tickets, side="right")
        places = np.empty(PERIOD, dtype=np.int64)
        for number in np.flatnonzero(after > before).tolist():
            places[numbers == number] = np.arange(before[number], after[number])
        return numbers, places


_MIXTURES: weakref.WeakSet[Mixture] = weakref.WeakSet()


def _forget_all() -> None:
    """In the child of a fork: another thread of the parent may have held a lock."""
    for mixture in list(_MIXTURES):
        mixture._forget()


os.register_at_fork(after_in_child=_forget_all)
