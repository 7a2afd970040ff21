"""Batches by step, passes over them and where a pass is: what Loader and Mixture share."""

from __future__ import annotations

import copy
import itertools
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import flag, integer, shown
from flat_tokens.errors import ArgumentError
from flat_tokens.loading.batch import IGNORED_LABEL, Batch
from flat_tokens.rows.ahead import Ahead, run_ahead
from flat_tokens.rows.row_cut import RowCut
from flat_tokens.rows.schedule import BatchSizes, interleaved
from stores.system import after_fork_in_child

ORDER_VERSION = 1  # of the rules in flat_tokens/rows/row_order.py and permutation.py
SINCE_LATER = ("order_version", "fingerprint")  # what states of earlier versions do not have
DTYPES = ("uint16", "int32", "uint32", "int64")
HOST_NAMES = (("host_index", "host_count"), ("rank", "world_size"), ("shard_index", "shard_count"))


class StepBatches(ABC):
    """Batches of some rows of a host. seq_len: tokens a row. rows_per_batch: this host's rows of a batch, of a unit of
    a schedule of batch sizes. A subclass gives the batches of units (flat_tokens/rows/schedule.py)."""

    seq_len: int
    rows_per_batch: int
    host_index: int
    host_count: int
    sizes: BatchSizes
    dtype: np.dtype[Any]
    start_id: int
    _is_labelled = False
    _own: tuple[str, ...] = ("_lock", "_next_step", "_cuts")  # what a copy in another process makes anew

    def _forget(self) -> None:
        """Lose what may have been half done, and all that a copy cannot share."""
        self._lock = threading.Lock()
        self._next_step = -1

    def _begin(self) -> None:
        """To be called last by the constructors."""
        self._passed = 0  # where the last pass is: the step behind its last batch
        self._resumed_at: int | None = None
        self._cuts: weakref.WeakSet[StepBatches] = weakref.WeakSet()
        self._forget()
        _ALL.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in self._own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cuts = weakref.WeakSet()
        self._forget()
        _ALL.add(self)

    # -- batches

    def batch(self, step: int) -> Batch:
        """The batch of a step, step >= 0. Cost: steps in a row share the reading of a window; a single one
        reads what its rows need. Where that is the front of a compressed zarr chunk, its checksum is compared when the
        zarr chunk is read next; `verify` compares all."""
        return self.strided_batch(step, 1)

    def strided_batch(self, step: int, stride: int) -> Batch:
        """batch(step) for a caller whose next call is step + stride, as one of `stride` workers."""
        step, stride = integer("step", step, 0), integer("stride", stride, 1)
        first, stop = self.sizes.units(step)
        self._check_units(stop)
        with self._lock:
            follows = step == self._next_step
            self._next_step = step + stride
            return interleaved([self._unit_batch(unit, follows) for unit in range(first, stop)])

    def from_step(
        self, step: int, stop: int | None = None, *, prefetch: bool | None = None
    ) -> Iterator[Batch]:
        """The batches of the steps [step, stop), without end if stop is None. prefetch: a thread reads the next
        window while this one is used; by default where the process may use more than one processor. The first
        batch costs what batch(step) does, and if it is the only one no window is read. A child of a fork goes on where
        the parent was, with a thread of its own."""
        prefetch = None if prefetch is None else flag("prefetch", prefetch)
        step, stop = steps_range(step, stop)
        first, end = self.sizes.units(step)[0], None if stop is None else self.sizes.units(stop)[0]
        if step != stop:
            self._check_units(first + 1 if end is None else end)
        self._passed = step
        return self._pass(run_ahead(lambda at, ahead: self._run_units(at, end, ahead), first, prefetch), step)

    def _pass(self, units: Iterator[Batch], step: int) -> Iterator[Batch]:
        for batch in units:
            if not self.sizes.is_constant:
                first, stop = self.sizes.units(step)
                batch = interleaved([batch, *itertools.islice(units, stop - first - 1)])
            step += 1
            self._passed = step
            yield batch
            del batch  # its memory may be used for the next one

    def __iter__(self) -> Iterator[Batch]:
        """The batches from the first one on, or from where a state that was loaded was taken; see `from_step`."""
        step, self._resumed_at = self._resumed_at or 0, None
        return self.from_step(step)

    def last_step(self, step: int) -> int | None:
        """Where a pass from a step on ends that was given no end: None for never."""
        return None

    def cut_as(self, dtype: npt.DTypeLike, is_labelled: bool) -> Self:
        """One with the same rows, whose batches have ids of `dtype` and, with is_labelled, cut_labels in place of
        inputs: for adapters, so that each id is written once, in its last form."""
        other = copy.copy(self)
        self._cuts.add(other)
        other.dtype = self._checked_dtype(dtype)
        other._is_labelled = is_labelled
        return other

    def _new_cut(self) -> RowCut:
        return RowCut(self.seq_len, self.dtype, self.start_id, self._is_labelled)

    @abstractmethod
    def _check_units(self, stop: int) -> None:
        """ArgumentError if there are no units up to `stop`."""

    @abstractmethod
    def _unit_batch(self, unit: int, follows: bool) -> Batch:
        """This host's rows of a unit. follows: whether the step in front was asked for last. The lock is held."""

    @abstractmethod
    def _run_units(self, unit: int, stop: int | None, ahead: Ahead) -> Iterator[Batch]:
        """Those of the units [unit, stop)."""

    @property
    @abstractmethod
    def is_masked(self) -> bool:
        """Whether a dataset has tokens that are not to be learned."""

    @abstractmethod
    def _largest_id(self) -> int:
        """The largest id of the datasets."""

    def _checked_dtype(self, dtype: npt.DTypeLike) -> np.dtype[Any]:
        try:
            checked = np.dtype(dtype)
        except (TypeError, ValueError):
            raise ArgumentError(f"dtype must be one of {', '.join(DTYPES)}, got {shown(dtype)}") from None
        if checked.name not in DTYPES:
            raise ArgumentError(f"dtype must be one of {', '.join(DTYPES)}, got {checked.name}")
        if self.is_masked and checked.kind == "u":
            raise ArgumentError(
                f"dtype {checked.name} does not hold {IGNORED_LABEL}, the target where the loss mask has a token "
                "that is not to be learned; take int32 or int64"
            )
        for name, value in (("max_token_id", self._largest_id()), ("start_id", self.start_id)):
            if value > np.iinfo(checked).max:
                raise ArgumentError(f"dtype {checked.name} does not hold {name} = {value}")
        return checked

    # -- states

    @abstractmethod
    def identity(self, step: int = 0) -> dict[str, Any]:
        """What the global batches follow from, as plain values, the number of hosts having no part in it. step: what a
        schedule says from this step on is left out, so that it may be changed."""

    def state_at(self, step: int) -> dict[str, Any]:
        """The state to go on at a step with: small, picklable and made of plain values."""
        step = integer("step", step, 0)
        return {"step": step, "loader": self.identity(step)}

    def step_of(self, state: Any) -> int:
        """The step of a state; ArgumentError names what differs from the one that it was taken of."""
        other = state.get("loader") if isinstance(state, dict) else None
        if not isinstance(other, dict) or "step" not in state:
            raise ArgumentError(
                f"a state has step and loader, as state_dict() gives them, got {shown(state)}"
            )
        step = integer("step of the state", state["step"], 0)
        own = self.identity(step)
        for name in {**own, **other}:
            if own.get(name) != other.get(name) and not (name in SINCE_LATER and name not in other):
                theirs, ours = (
                    value if isinstance(value, str) else shown(value)
                    for value in (other.get(name), own.get(name))
                )
                raise ArgumentError(f"the state is of a loader with {name} {theirs}, this one has {ours}")
        return step

    def state_dict(self) -> dict[str, Any]:
        """Where the last pass is: the step behind its last batch, and what the batches follow from. ArgumentError where
        an adapter makes batches of this: it has the state."""
        self._check_no_adapter("take its state_dict()")
        return self.state_at(self._passed if self._resumed_at is None else self._resumed_at)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next pass, `for batch in ...`, begins where the state was taken, on any number of hosts, and so does an
        adapter that is made of this. ArgumentError names what differs: another dataset, seed, batch size, schedule up
        to here, or order."""
        step = self.step_of(state)
        self._check_no_adapter("load the state into that")
        self._resumed_at = step

    @property
    def loaded_step(self) -> int | None:
        """Where the next pass begins by a state that was loaded; None without one."""
        return self._resumed_at

    def _check_no_adapter(self, instead: str) -> None:
        if len(self._cuts):
            name = type(self).__name__
            raise ArgumentError(
                f"an adapter (BatchDataset, global_batches, BatchSource) makes the batches of this {name}, which does "
                f"not know how far it is; {instead}"
            )


def steps_range(step: int, stop: int | None) -> tuple[int, int | None]:
    """The steps [step, stop), checked."""
    step = integer("step", step, 0)
    stop = None if stop is None else integer("stop", stop)
    if stop is not None and stop < step:
        raise ArgumentError(f"stop must be at least step = {step}, got {stop}")
    return step, stop


def host_of(given: dict[str, Any]) -> tuple[int, int]:
    """host_index and host_count from either of the pairs of HOST_NAMES, (0, 1) where none is given; ArgumentError for
    values outside their ranges, half a pair, or two."""
    pairs = [pair for pair in HOST_NAMES if any(given.get(name) is not None for name in pair)]
    if len(pairs) > 1:
        raise ArgumentError(f"give {' and '.join(pairs[0])} or {' and '.join(pairs[1])}, not both")
    index_name, count_name = pairs[0] if pairs else HOST_NAMES[0]
    index, count = given.get(index_name), given.get(count_name)
    if index is not None and count is None and pairs[0] != HOST_NAMES[0]:
        raise ArgumentError(f"{index_name} needs {count_name}")
    index = integer(index_name, 0 if index is None else index)
    count = integer(count_name, 1 if count is None else count)
    if count < 1 or not 0 <= index < count:
        raise ArgumentError(f"{index_name} must be in [0, {count_name} = {count}), got {index}")
    return index, count


_ALL: weakref.WeakSet[StepBatches] = weakref.WeakSet()


def _forget_all() -> None:
    """In the child of a fork: another thread of the parent may have held a lock, or been filling a window."""
    for batches in list(_ALL):
        batches._forget()


after_fork_in_child(_forget_all)
