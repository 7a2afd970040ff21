"""Shuffled batches as a pure function of their step.

    loader = Loader(dataset.train, seq_len=1024, batch_size=64, seed=0)
    for batch in loader.from_step(17_000): ...        # resumes anywhere, with nothing to restore

batch(step) follows from (array, the constructor's arguments, step) alone: not from what was read before, nor
from the number of hosts: the rows of hosts 0, 1, ... one under the other are the global batch, the same for any
number of hosts that divides batch_size. flat_tokens/rows/row_order.py states which rows a batch has; epoch
step // steps_per_epoch follows the one before with an order of its own.

Cost: raw tokens are gathered from the mapped files (flat_tokens/rows/gathered_steps.py). Others, and sequences, are
read a window at a time (flat_tokens/rows/window_steps.py; 4 Mi tokens of each epoch by default, 4 bytes a token in
memory or 2 where ids fit, twice while a thread reads ahead), each zarr chunk once a window. A step that does not follow
the one before is read alone: resuming takes as long as one batch.
"""

from __future__ import annotations

import copy
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import choice, flag, integer, shown, split
from flat_tokens.batch import Batch
from flat_tokens.errors import ArgumentError
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.ahead import run_ahead
from flat_tokens.rows.gathered_steps import GatheredSteps
from flat_tokens.rows.row_cut import LabelCut, RowCut
from flat_tokens.rows.row_gather import RowGather
from flat_tokens.rows.row_order import HostOrder, RowOrder
from flat_tokens.rows.row_source import PackedRows
from flat_tokens.rows.sequence_rows import LONG_SEQUENCES, Losses, SequenceRows
from flat_tokens.rows.window_steps import WindowSteps
from flat_tokens.sources import RowPart, parts_of_rows

LARGEST_BLOCK = 2**62  # tokens, more than any split has: its rows are counted in 64 bits
MOST_STREAMS = 8  # by default, so that each of 1, 2, 4 or 8 hosts reads data of its own
DTYPES = ("uint16", "int32", "uint32", "int64")


class Loader:
    """Batches of rows of `seq_len` tokens, shuffled by `seed`.

    seq_len: tokens a row. batch_size: rows of all hosts together. seed: in [0, 2^64).
    host_index, host_count: this host gets rows [host_index, host_index + 1) * batch_size / host_count of each
    batch; host_count must divide batch_size, and the global batches do not depend on it. streams: a divisor of
    batch_size; the order depends on it; by default the largest one up to 8. Hosts whose rows come from the same stream
    read the same data, so for more than 8 hosts, or a number that does not divide the streams, a multiple of host_count
    reads less.
    packed: rows are cut from the stream wherever they end; False: one sequence a row, padded with padding_id,
    and long_sequences says whether longer ones are "split" into several rows or "truncate"d.
    shuffle: False keeps the order of the dataset. block_tokens: tokens that stay neighbours when blocks are
    permuted; take at least one zarr chunk. shuffle_blocks: blocks whose rows are shuffled among themselves;
    memory and mixing grow with block_tokens * shuffle_blocks, 4 Mi tokens by default.
    dtype: of inputs and targets: int32, int64, uint32, or uint16 if the ids fit.

    len(loader) is steps_per_epoch; `for batch in loader` is the first epoch. ArgumentError for values outside
    their ranges, DatasetError on reading what is damaged. Picklable; safe to use from several threads."""

    _cut_type: type[RowCut] = RowCut

    def __init__(
        self,
        array: FlatTokensArray,
        seq_len: int,
        batch_size: int,
        seed: int = 0,
        *,
        host_index: int = 0,
        host_count: int = 1,
        streams: int | None = None,
        packed: bool = True,
        long_sequences: str = "split",
        padding_id: int = 0,
        shuffle: bool = True,
        block_tokens: int = 2**18,
        shuffle_blocks: int = 16,
        dtype: npt.DTypeLike = np.int32,
    ) -> None:
        split("array", array, "encoded_tokens", "seq_starts", "max_token_id")
        seq_len, batch_size = integer("seq_len", seq_len), integer("batch_size", batch_size)
        host_index, host_count = integer("host_index", host_index), integer("host_count", host_count)
        streams = None if streams is None else integer("streams", streams)
        seed, padding_id = integer("seed", seed), integer("padding_id", padding_id)
        block_tokens = min(integer("block_tokens", block_tokens, 1), LARGEST_BLOCK)
        shuffle_blocks = integer("shuffle_blocks", shuffle_blocks)
        long_sequences = choice("long_sequences", long_sequences, LONG_SEQUENCES)
        packed, shuffle = flag("packed", packed), flag("shuffle", shuffle)
        self.array = array
        self.seq_len = seq_len
        self.batch_size = batch_size
        self.host_index = host_index
        self.host_count = host_count
        self.dtype = _checked_dtype(dtype, array.max_token_id)
        if not 0 <= padding_id <= array.max_token_id:
            raise ArgumentError(f"padding_id must be in [0, {array.max_token_id}], got {padding_id}")
        if host_count < 1 or not 0 <= host_index < host_count:
            raise ArgumentError(f"host_index must be in [0, host_count = {host_count}), got {host_index}")
        self._source = (
            PackedRows(array, seq_len) if packed else SequenceRows(array, seq_len, long_sequences, padding_id)
        )
        self.order = RowOrder.create(
            self._source.row_count,
            batch_size,
            _stream_count(batch_size) if streams is None else streams,
            max(1, block_tokens // seq_len),
            shuffle_blocks,
            seed,
            shuffle,
        )
        if batch_size % host_count:
            raise _hosts_error(batch_size, host_count)
        per_host = batch_size // host_count
        self.host = HostOrder(self.order, host_index * per_host, (host_index + 1) * per_host)
        self.rows_per_batch = self.host.rows_per_batch
        self._forget()
        _LOADERS.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._next_step = -1
        self._steps: GatheredSteps | WindowSteps | None = None

    def __getstate__(self) -> dict[str, Any]:
        own = ("_lock", "_next_step", "_steps")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()
        _LOADERS.add(self)

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in an epoch."""
        return self.order.steps_per_epoch

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __iter__(self) -> Iterator[Batch]:
        return self.from_step(0, self.steps_per_epoch)

    def __repr__(self) -> str:
        return (
            f"<Loader of {self.array.name}: {self.steps_per_epoch} steps an epoch, batches of {self.batch_size} x "
            f"{self.seq_len}, host {self.host_index} of {self.host_count}>"
        )

    def rows_of(self, step: int) -> npt.NDArray[np.int64]:
        """Which rows this host has in a batch, int64[rows_per_batch]: numbers for `array.row`, or of sequences
        or their parts where not packed."""
        return self.host.rows_at(integer("step", step, 0))

    def sources_of(self, step: int) -> list[list[RowPart]]:
        """Which sequences are in each row of this host's batch of a step, and where they come from
        (flat_tokens/sources.py). DatasetError as `array.source_of`."""
        rows = self.rows_of(step)
        order = np.argsort(rows, kind="stable")
        starts, stops = self._source.token_ranges(rows[order])
        found = parts_of_rows(self.array, starts, stops)
        return [found[at] for at in np.argsort(order).tolist()]

    def batch(self, step: int) -> Batch:
        """The batch of a step, step >= 0. Cost: steps in a row share the reading of a window; a single one
        reads what its rows need. Where that is the front of a compressed zarr chunk, its checksum is compared when the
        zarr chunk is read next; `verify` compares all."""
        return self.strided_batch(step, 1)

    def strided_batch(self, step: int, stride: int) -> Batch:
        """batch(step) for a caller whose next call is step + stride, as one of `stride` workers."""
        step, stride = integer("step", step, 0), integer("stride", stride, 1)
        with self._lock:
            follows = step == self._next_step
            self._next_step = step + stride
            if self._steps is None:
                self._steps = self._new_steps()
            return self._steps.batch(step, follows)

    def cut_as(self, dtype: npt.DTypeLike, is_labelled: bool) -> Loader:
        """A loader of the same rows, whose batches have ids of `dtype` and, with is_labelled, cut_labels in place of
        inputs: for adapters, so that each id is written once, in its last form."""
        other = copy.copy(self)
        other.dtype = _checked_dtype(dtype, self.array.max_token_id)
        other._cut_type = LabelCut if is_labelled else RowCut
        return other

    def identity(self) -> dict[str, Any]:
        """What the global batches follow from, as plain values: a state that was kept can be compared."""
        order, source = self.order, self._source
        return {
            "split": self.array.name,
            "token_count": self.array.token_count,
            "seq_count": self.array.seq_count,
            "seq_len": self.seq_len,
            "row_kind": source.kind,
            "rows": order.row_count,
            "batch_size": order.batch_size,
            "streams": order.streams,
            "block_rows": order.block_rows,
            "window_blocks": order.window_blocks,
            "seed": order.seed,
            "shuffle": order.shuffle,
        }

    def from_step(
        self, step: int, stop: int | None = None, *, prefetch: bool | None = None
    ) -> Iterator[Batch]:
        """The batches of the steps [step, stop), without end if stop is None. prefetch: a thread reads the next
        window while this one is used; by default where the process may use more than one processor. The first
        batch costs what batch(step) does, and if it is the only one no window is read. A child of a fork goes on where
        the parent was, with a thread of its own."""
        prefetch = None if prefetch is None else flag("prefetch", prefetch)
        step, stop = steps_range(step, stop)
        return run_ahead(lambda at, ahead: self._new_steps().run(at, stop, ahead), step, prefetch)

    def losses(self) -> Losses:
        """What is truncated, padded and left out. Cost: one pass over seq_starts where not packed."""
        left_out = self.order.row_count % self.batch_size
        if isinstance(self._source, SequenceRows):
            return self._source.losses(left_out)
        used = self._source.row_count * self.seq_len
        tokens = self.array.token_count
        return Losses(tokens, used, 0, tokens - used, 0, self._source.row_count, 0, left_out)

    # -- reading

    def new_windows(self, host: HostOrder | None = None) -> WindowSteps:
        """A reader of windows and rows, for callers that put batches together themselves. host: by default this
        loader's."""
        return WindowSteps(self.array, self._source, self.host if host is None else host, self._new_cut())

    def _new_steps(self) -> GatheredSteps | WindowSteps:
        if isinstance(self._source, PackedRows):
            gather = RowGather.of(self.array.encoded_tokens, self._new_cut())
            if gather is not None:
                return GatheredSteps(self.host, gather)
        return self.new_windows()

    def _new_cut(self) -> RowCut:
        return self._cut_type(self.seq_len, self.dtype)


def steps_range(step: int, stop: int | None) -> tuple[int, int | None]:
    """The steps [step, stop), checked."""
    step = integer("step", step, 0)
    stop = None if stop is None else integer("stop", stop)
    if stop is not None and stop < step:
        raise ArgumentError(f"stop must be at least step = {step}, got {stop}")
    return step, stop


def _stream_count(batch_size: int) -> int:
    """The default: it depends on batch_size alone, so the order does."""
    return max(count for count in range(1, MOST_STREAMS + 1) if batch_size % count == 0)


def _hosts_error(batch_size: int, host_count: int) -> ArgumentError:
    """Names the nearest numbers of hosts that divide the batch, and the nearest batches that the hosts divide."""
    fewer = next(count for count in range(min(host_count, batch_size), 0, -1) if batch_size % count == 0)
    more = next((count for count in range(host_count, batch_size + 1) if batch_size % count == 0), fewer)
    hosts = " or ".join(str(count) for count in sorted({fewer, more}))
    below = batch_size // host_count * host_count
    sizes = " or ".join(str(size) for size in (below, below + host_count) if size)
    return ArgumentError(
        f"host_count must divide batch_size = {batch_size}, got {host_count}: take {hosts} hosts, or (another order of "
        f"batches) batch_size {sizes}"
    )


def _checked_dtype(dtype: npt.DTypeLike, max_token_id: int) -> np.dtype[Any]:
    try:
        checked = np.dtype(dtype)
    except (TypeError, ValueError):
        raise ArgumentError(f"dtype must be one of {', '.join(DTYPES)}, got {shown(dtype)}") from None
    if checked.name not in DTYPES:
        raise ArgumentError(f"dtype must be one of {', '.join(DTYPES)}, got {checked.name}")
    if max_token_id > np.iinfo(checked).max:
        raise ArgumentError(f"dtype {checked.name} does not hold max_token_id = {max_token_id}")
    return checked


_LOADERS: weakref.WeakSet[Loader] = weakref.WeakSet()


def _forget_all() -> None:
    """In the child of a fork: another thread of the parent may have held a lock, or been filling a window."""
    for loader in list(_LOADERS):
        loader._forget()


os.register_at_fork(after_in_child=_forget_all)
