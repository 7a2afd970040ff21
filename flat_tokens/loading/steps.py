"""Batches by step, and iteration over them: the base class of Loader and Mixture."""

from __future__ import annotations

import copy
import functools
import itertools
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from sys import is_finalizing  # bound here: modules may be cleared when the interpreter ends
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.ma  # np.unique imports it late: a fork during that import would leave its lock held
import numpy.typing as npt

from flat_tokens.arguments import flag, integer, invalid, shown
from flat_tokens.errors import ArgumentError
from flat_tokens.format import Int64
from flat_tokens.loading.row_buffer import GROUP_ROWS, MappedRows, RowBuffer, Share, StepGroup
from flat_tokens.order.row_order import Draws
from flat_tokens.rows.batch import IGNORED_LABEL, Batch
from flat_tokens.rows.cut import RowCut

if TYPE_CHECKING:
    from flat_tokens.loading.loader import Loader

ORDER_VERSION = 2  # of the rules in flat_tokens/order
DTYPES = ("uint16", "int32", "uint32", "int64")
GROUP_TOKENS = 2**21  # limit for the steps that are planned together
MAX_BATCH_SIZE = 2**31  # rows, more than memory holds
MAX_DRAW = 2**61  # of a stream, so that its numbers stay within 64 bits


class StepBatches(ABC):
    """Batches of this rank's rows.

    seq_len: tokens per row.
    batch_size: rows of all ranks together.
    rows_per_batch: rows of this rank: [first_row, stop_row) of each global batch, then rows of padding.
    members: the Loader of each dataset; a Loader is its own.
    """

    seq_len: int
    batch_size: int
    dtype: np.dtype[Any]
    start_id: int
    members: Sequence[Loader]
    _per_stream: int  # rows of each stream in a global batch
    _is_labelled = False
    _own: tuple[str, ...] = ("_lock", "_previous_step", "_gap", "_rows", "_stride")  # never copied

    def _set_ranks(self, rank: int | None, world_size: int | None, drop_last: bool) -> None:
        """Give all ranks equal shares; rank 0 of 1 by default. Raise ArgumentError for one number without the other.

        If world_size does not divide batch_size, raise ArgumentError, or without drop_last pad the last ranks.
        """
        if (rank is None) != (world_size is None):
            given, missing = ("rank", "world_size") if world_size is None else ("world_size", "rank")
            raise ArgumentError(f"{missing}: required with {given}. Pass both or neither.")
        batch_size = self.batch_size
        self.world_size = 1 if world_size is None else integer("world_size", world_size, 1)
        self.rank = 0 if rank is None else integer("rank", rank)
        if not 0 <= self.rank < self.world_size:
            raise invalid("rank", f"must be in [0, world_size = {self.world_size})", rank)
        if drop_last and batch_size % self.world_size:
            rule = f"must divide batch_size = {batch_size}"
            raise invalid("world_size", rule, self.world_size, _fitting(batch_size, self.world_size))
        self.rows_per_batch = -(-batch_size // self.world_size)
        self._first_row = min(self.rank * self.rows_per_batch, batch_size)
        self._stop_row = min(self._first_row + self.rows_per_batch, batch_size)

    def _reset(self) -> None:
        """Make the attributes of `_own`. Constructors call this last."""
        self._lock = threading.Lock()
        self._previous_step, self._gap = -2, 0
        self._rows: RowBuffer | MappedRows | None = None
        self._stride = 1
        _ALL.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    # -- batches

    def batch(self, step: int) -> Batch:
        """The batch of a step, step >= 0.

        Cost: consecutive steps, and from the third call on steps at equal distances, read each zarr chunk once. Any
        other step reads only the zarr chunks of its rows.
        """
        step = integer("step", step, 0)
        self._check_steps(step + 1)
        with self._lock:
            gap = step - self._previous_step
            follows = gap == 1 or gap == self._gap > 0
            self._previous_step, self._gap = step, gap
            return self._batch(step, gap if follows else None)

    def from_step(
        self, step: int, stop: int | None = None, *, prefetch: bool | None = None
    ) -> Iterator[Batch]:
        """The batches of the steps [step, stop), without end if stop is None.

        prefetch: whether a thread reads ahead (default: if the process may use more than one processor).

        The first batch costs as much as batch(step). The second one waits until the shuffle buffer is filled. Use an
        iterator only in the process that created it.
        """
        prefetch = None if prefetch is None else flag("prefetch", prefetch)
        step, stop = steps_range(step, stop)
        if step != stop:
            self._check_steps(step + 1 if stop is None else stop)
        return self._run(step, stop, prefetch)

    def __iter__(self) -> Iterator[Batch]:
        """The batches from step 0 on; see `from_step`."""
        return self.from_step(0)

    def default_stop(self, step: int) -> int | None:
        """The default end of a pass that starts at `step`; None for no end."""
        return None

    def cut_as(self, dtype: npt.DTypeLike, is_labelled: bool) -> Self:
        """A copy for adapters, with IDs of `dtype` and, if is_labelled, cut_labels instead of inputs."""
        other = copy.copy(self)
        other.dtype = self._checked_dtype(dtype)
        other._is_labelled = is_labelled
        return other

    def _check_steps(self, stop: int) -> None:
        """Raise ArgumentError unless all steps before `stop` have a batch."""
        if stop > MAX_DRAW // self._per_stream:
            raise invalid("step", f"must be at most {MAX_DRAW // self._per_stream - 1}", stop - 1)

    @abstractmethod
    def _draws(self, step: int, count: int) -> Draws:
        """This rank's draws for `count` steps from `step` on, without padding rows."""

    def _new_rows(self, stride: int = 1) -> RowBuffer | MappedRows:
        """Make the reader of the rows. stride: distance of the steps that will be read."""
        cut = RowCut(self.seq_len, self.dtype, self.start_id, self._is_labelled)
        readers = [member.reader for member in self.members]
        count, share = self._stop_row - self._first_row, None
        if len(readers) == 1:
            stream = readers[0].stream()
            if stream is not None:
                return MappedRows(stream, cut)
            share = Share(self._per_stream, self._first_row, self._stop_row, stride)
        orders = [member.order for member in self.members]
        return RowBuffer(orders, readers, cut, count, self.rows_per_batch - count, share)

    def _batch(self, step: int, stride: int | None) -> Batch:
        """The batch of a step. stride: distance to the next step, None if unknown. The lock is held."""
        if self._rows is None or (stride is not None and stride != self._stride):
            self._stride = stride or 1
            self._rows = self._new_rows(self._stride)
        draws = self._draws(step, 1)
        rows, self._rows = self._rows, None  # an error may leave it incomplete
        batch = (
            rows.batch_alone(draws) if stride is None else rows.batch(rows.prepare([StepGroup(1, draws)])[0])
        )
        self._rows = rows
        return batch

    def _run(self, step: int, stop: int | None, prefetch: bool | None) -> Iterator[Batch]:
        """The batches [step, stop). The rows of the following steps are read ahead, group by group."""
        if step == stop:
            return
        process = os.getpid()
        rows = self._new_rows()
        yield rows.batch_alone(self._draws(step, 1))  # first, so that it does not wait for windows
        batch_tokens = self.rows_per_batch * self.seq_len
        count = max(1, min(GROUP_ROWS // self.rows_per_batch, GROUP_TOKENS // batch_tokens))
        groups = self._groups(step + 1, stop, count)
        upcoming = deque(itertools.islice(groups, 1 + -(-rows.tokens_ahead // (count * batch_tokens))))
        with _reading_ahead(prefetch) as start:

            def begin() -> Callable[[], Int64] | None:
                return start(functools.partial(rows.prepare, list(upcoming))) if upcoming else None

            result = begin()
            while result is not None:
                if os.getpid() != process:
                    text = "from_step: the iterator belongs to the parent of this process."
                    raise ArgumentError(f"{text} Create one in each process.")
                ready = result()
                upcoming.popleft()
                upcoming.extend(itertools.islice(groups, 1))
                result = begin()
                for places in ready:
                    yield rows.batch(places)

    def _groups(self, step: int, stop: int | None, count: int) -> Iterator[StepGroup]:
        """The draws of the steps [step, stop), `count` steps at a time."""
        while stop is None or step < stop:
            count = count if stop is None else min(count, stop - step)
            yield StepGroup(count, self._draws(step, count))
            step += count

    def _checked_dtype(self, dtype: npt.DTypeLike) -> np.dtype[Any]:
        try:
            checked = np.dtype(dtype)
        except (TypeError, ValueError):
            checked = None
        if checked is None or checked.name not in DTYPES:
            raise invalid("dtype", f"must be one of {', '.join(DTYPES)}", dtype)
        is_masked = any(getattr(member.array, "loss_mask", None) is not None for member in self.members)
        if checked.kind == "u" and (is_masked or any(member.may_pad for member in self.members)):
            why = "excluded by the loss mask" if is_masked else "at padding"
            rule = f"must hold {IGNORED_LABEL}, the target of tokens {why}"
            raise invalid("dtype", rule, checked.name, "Use int32 or int64.")
        largest = max(member.array.max_token_id for member in self.members)
        for name, value in (("max_token_id", largest), ("start_id", self.start_id)):
            if value > np.iinfo(checked).max:
                raise invalid("dtype", f"must hold {name} = {value}", checked.name)
        return checked

    # -- states. A state holds the default end of the pass, which the step does not determine: in epochs of 10 steps,
    # step 10 is both the end of the first and the beginning of the second.

    @abstractmethod
    def identity(self, step: int = 0) -> dict[str, Any]:
        """All that determines the global batches, as plain values. The number of ranks does not.

        step: omit entries of a schedule from this step on, so that they may change.
        """

    def state_at(self, step: int) -> dict[str, Any]:
        """The state to resume at a step: small, picklable and made of plain values."""
        step = integer("step", step, 0)
        return {"step": step, "stop": self.default_stop(step), "loader": self.identity(step)}

    def step_of(self, state: Any) -> int:
        """The step of a state. Raise ArgumentError with the first difference if its batches differ."""
        other = state.get("loader") if isinstance(state, dict) else None
        if not isinstance(other, dict) or "step" not in state:
            raise invalid("state", "must be a result of state_dict()", state)
        step = integer("state: step", state["step"], 0)
        if state.get("stop") is not None:
            integer("state: stop", state["stop"], 0)
        own = self.identity(step)
        for name in {**own, **other}:
            if own.get(name) != other.get(name):
                theirs, ours = (
                    value if isinstance(value, str) else shown(value)
                    for value in (other.get(name), own.get(name))
                )
                raise ArgumentError(f"state: {name} must be {ours}, as in this loader (got {theirs})")
        return step


def steps_range(step: int, stop: int | None) -> tuple[int, int | None]:
    """The steps [step, stop), checked."""
    step = integer("step", step, 0)
    stop = None if stop is None else integer("stop", stop)
    if stop is not None and stop < step:
        raise invalid("stop", f"must be at least step = {step}", stop)
    return step, stop


def _fitting(batch_size: int, world_size: int) -> str:
    """Name the nearest numbers that fit."""
    fewer = next(count for count in range(min(world_size, batch_size), 0, -1) if batch_size % count == 0)
    more = next((count for count in range(world_size, batch_size + 1) if batch_size % count == 0), fewer)
    ranks = " or ".join(str(count) for count in sorted({fewer, more}))
    below = batch_size // world_size * world_size
    sizes = " or ".join(str(size) for size in (below, below + world_size) if size)
    return f"Use {ranks} ranks, or batch_size {sizes} (which changes the order)."


def check_streams(streams: int, batch_size: int) -> None:
    """Raise ArgumentError unless streams is at least 1 and divides batch_size."""
    if batch_size % integer("streams", streams, 1):
        raise invalid("streams", f"must divide batch_size = {batch_size}", streams)


@contextmanager
def _reading_ahead(prefetch: bool | None) -> Iterator[Callable[[Callable[[], Any]], Callable[[], Any]]]:
    """start(work) begins some work, and returns a function that waits for its result or raises its error.

    prefetch: True for a thread, False to work when the result is requested, None for a thread if the process may use
        more than one processor. On one, a thread that decodes would take time from the thread that trains.
    """
    if not (prefetch or (prefetch is None and len(os.sched_getaffinity(0)) > 1)):
        yield lambda work: work
        return
    thread = ThreadPoolExecutor(1, "flat_tokens-prefetch")
    try:
        yield lambda work: thread.submit(work).result
    finally:
        if not is_finalizing():
            thread.shutdown()


_ALL: weakref.WeakSet[StepBatches] = weakref.WeakSet()


def _reset_all() -> None:
    """In the child of a fork: another thread of the parent may have held a lock or filled a buffer."""
    for batches in list(_ALL):
        batches._reset()


os.register_at_fork(after_in_child=_reset_all)
