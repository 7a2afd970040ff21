"""Shuffled batches as a pure function of their step.

    loader = Loader(dataset.train, seq_len=1024, batch_size=64, seed=0)
    for batch in loader.from_step(17_000): ...        # resumes anywhere, with nothing to restore

batch(step) follows from (array, the constructor's arguments, step) alone: not from what was read before, nor
from the number of hosts, as long as it divides `streams`: the rows of hosts 0, 1, ... one under the other are
the global batch. flat_tokens/row_order.py states which rows a batch has; epoch step // steps_per_epoch
follows the one before with an order of its own.

Cost: raw tokens are gathered from the mapped files (flat_tokens/row_gather.py). Others, and sequences, are read a
window at a time (4 Mi tokens of each epoch by default, 4 bytes a token in memory or 2 where ids fit, twice while a
thread reads ahead), each zarr chunk once a window. A step that does not follow the one before is read alone: resuming
takes as long as one batch.
"""

from __future__ import annotations

import functools
import operator
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens import parallel_fill
from flat_tokens.ahead import Ahead, working_ahead
from flat_tokens.batch import Batch
from flat_tokens.errors import ArgumentError
from flat_tokens.narrow_window import NarrowWindow
from flat_tokens.reader import FlatTokensArray
from flat_tokens.row_cut import RowCut
from flat_tokens.row_gather import RowGather
from flat_tokens.row_order import RowOrder, WindowId
from flat_tokens.row_source import ChunkReader, PackedRows
from flat_tokens.row_window import RowWindow
from flat_tokens.sequence_rows import Losses, SequenceRows

Window = RowWindow | NarrowWindow

MOST_STREAMS = 8  # by default, so that 1, 2, 4 or 8 hosts see the same batches
DTYPES = ("uint16", "int32", "uint32", "int64")


class Loader:
    """Batches of rows of `seq_len` tokens, shuffled by `seed`.

    seq_len: tokens a row. batch_size: rows of all hosts together. seed: in [0, 2^64).
    host_index, host_count: this host gets rows [host_index, host_index + 1) * batch_size / host_count of each
    batch and reads only what they need. streams: a multiple of host_count that divides batch_size; the order
    depends on it; by default the largest divisor of batch_size up to 8, or host_count if that does not fit.
    packed: rows are cut from the stream wherever they end; False: one sequence a row, padded with padding_id,
    and long_sequences says whether longer ones are "split" into several rows or "truncate"d.
    shuffle: False keeps the order of the dataset. block_tokens: tokens that stay neighbours when blocks are
    permuted; take at least one zarr chunk. shuffle_blocks: blocks whose rows are shuffled among themselves;
    memory and mixing grow with block_tokens * shuffle_blocks, 4 Mi tokens by default.
    dtype: of inputs and targets: int32, int64, uint32, or uint16 if the ids fit.

    len(loader) is steps_per_epoch; `for batch in loader` is the first epoch. ArgumentError for values outside
    their ranges, DatasetError on reading what is damaged. Picklable; safe to use from several threads."""

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
        seq_len, batch_size = _integer("seq_len", seq_len), _integer("batch_size", batch_size)
        host_index, host_count = _integer("host_index", host_index), _integer("host_count", host_count)
        streams = None if streams is None else _integer("streams", streams)
        seed, padding_id = _integer("seed", seed), _integer("padding_id", padding_id)
        block_tokens = _integer("block_tokens", block_tokens)
        shuffle_blocks = _integer("shuffle_blocks", shuffle_blocks)
        self.array = array
        self.seq_len = seq_len
        self.batch_size = batch_size
        self.host_index = host_index
        self.host_count = host_count
        self.dtype = _checked_dtype(dtype, array.max_token_id)
        if not 0 <= padding_id <= array.max_token_id:
            raise ArgumentError(f"padding_id must be in [0, {array.max_token_id}], got {padding_id}")
        if block_tokens < 1:
            raise ArgumentError(f"block_tokens must be at least 1, got {block_tokens}")
        if host_count < 1 or not 0 <= host_index < host_count:
            raise ArgumentError(f"host_index must be in [0, host_count = {host_count}), got {host_index}")
        self._source = (
            PackedRows(array, seq_len) if packed else SequenceRows(array, seq_len, long_sequences, padding_id)
        )
        self.order = RowOrder.create(
            self._source.row_count,
            batch_size,
            _stream_count(batch_size, host_count) if streams is None else streams,
            max(1, block_tokens // seq_len),
            shuffle_blocks,
            seed,
            shuffle,
        )
        if self.order.streams % host_count:
            raise ArgumentError(f"host_count must divide streams = {self.order.streams}, got {host_count}")
        per_host = self.order.streams // host_count
        self._streams = (host_index * per_host, (host_index + 1) * per_host)
        self.rows_per_batch = batch_size // host_count
        self._forget()
        _LOADERS.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._kept: tuple[WindowId, Window] | None = None
        self._chunks: ChunkReader | None = None
        self._next_step = -1
        self._row_cut = self.new_cut()
        self._gather: RowGather | None = None
        self._kept_firsts: tuple[WindowId, npt.NDArray[np.int64], bool] | None = None

    def __getstate__(self) -> dict[str, Any]:
        own = ("_lock", "_kept", "_chunks", "_next_step", "_row_cut", "_gather", "_kept_firsts")
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
        step = _checked_step(step)
        window = self.order.window_at(step)
        at = step % self.steps_per_epoch - window.first_step
        rows: npt.NDArray[np.int64] = self.order.window_order(window, *self._streams)[at]
        return rows.reshape(-1)

    def batch(self, step: int) -> Batch:
        """The batch of a step, step >= 0. Cost: steps in a row share the reading of a window; a single one
        reads what its rows need."""
        step = _checked_step(step)
        window = self.order.window_at(step)
        with self._lock:
            follows = step == self._next_step
            self._next_step = step + 1
            if self._gather is None:
                self._gather = self._new_gather()
            if self._gather is not None:
                return self._gathered(self._gather, window, step, follows)
            if self._kept is None or self._kept[0] != window:
                if not follows:
                    return self._read_alone(step, self._take_chunks(), self._row_cut)
                self._kept = (window, self._read(window, self._take_memory(), self._take_chunks()))
            return self._cut(self._kept[1], window, step, self._row_cut)

    def strided_batch(self, step: int, stride: int) -> Batch:
        """batch(step) for a caller whose next call is step + stride, as one of `stride` workers."""
        batch = self.batch(step)
        self._next_step = step + stride
        return batch

    def identity(self) -> dict[str, Any]:
        """What the global batches follow from, as plain values: a state that was kept can be compared."""
        order = self.order
        return {
            "split": self.array.name,
            "token_count": self.array.token_count,
            "seq_count": self.array.seq_count,
            "seq_len": self.seq_len,
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
        batch does not wait for a whole window."""
        step = _checked_step(step)
        stop = None if stop is None else _integer("stop", stop)
        if stop is not None and stop < step:
            raise ArgumentError(f"stop must be at least step = {step}, got {stop}")
        return self._from_step(step, stop, prefetch)

    def losses(self) -> Losses:
        """What is truncated, padded and left out. Cost: one pass over seq_starts where not packed."""
        left_out = self.order.row_count % self.batch_size
        if isinstance(self._source, SequenceRows):
            return self._source.losses(left_out)
        used = self._source.row_count * self.seq_len
        tokens = self.array.token_count
        return Losses(tokens, used, 0, tokens - used, 0, self._source.row_count, 0, left_out)

    # -- in parts, for those who put batches together themselves

    @property
    def stream_range(self) -> tuple[int, int]:
        """The streams [first, stop) of this host."""
        return self._streams

    def new_memory(self, rows: int) -> RowWindow:
        """Room for so many rows."""
        return self._memory(rows)

    def new_cut(self) -> RowCut:
        """What makes batches of rows in memory, for one thread."""
        return RowCut(self.seq_len, self.dtype)

    def read_rows(self, rows: npt.NDArray[np.int64], memory: RowWindow) -> None:
        """Read some rows, numbered as in rows_of, into the first places of `memory`. For one thread."""
        self._source.fill(rows, memory, self._take_chunks())

    def read_window(self, window: WindowId) -> RowWindow:
        """All rows of a window for this host, in the order of the steps. For one thread."""
        memory = self._memory(self.order.window_rows // self.host_count)
        self._read(window, memory, self._take_chunks())
        return memory

    # -- gathering, where all tokens are mapped as one array

    def _new_gather(self) -> RowGather | None:
        if not isinstance(self._source, PackedRows):
            return None
        return RowGather.of(self.array.encoded_tokens, self.seq_len, self.dtype)

    def _gathered(self, gather: RowGather, window: WindowId, step: int, follows: bool) -> Batch:
        """A batch whose rows are touched by themselves, or with those of all the window if it is one of many."""
        if self._kept_firsts is None or self._kept_firsts[0] != window:
            self._kept_firsts = (window, self._window_firsts(window), False)
        _, firsts, is_touched = self._kept_firsts
        wanted = firsts[step % self.steps_per_epoch - window.first_step]
        if not is_touched:
            gather.touch(firsts.reshape(-1) if follows else wanted, is_alone=not follows)
            self._kept_firsts = (window, firsts, follows)
        return gather.batch(wanted)

    def _window_firsts(self, window: WindowId) -> npt.NDArray[np.int64]:
        """int64[steps, rows_per_batch], where the rows of a window begin in the stream."""
        rows = self.order.window_order(window, *self._streams).reshape(window.step_count, -1)
        return np.ascontiguousarray(rows) * self.seq_len

    def _gathered_ahead(
        self, gather: RowGather, step: int, stop: int | None, ahead: Ahead
    ) -> Iterator[Batch]:
        """The batches [step, stop), stop above step, while the rows of the next window are touched."""

        def touched(window: WindowId) -> npt.NDArray[np.int64]:
            firsts = self._window_firsts(window)
            gather.touch(firsts.reshape(-1))
            return firsts

        window = self.order.window_at(step)
        firsts = self._window_firsts(window)
        pending = ahead.begin(functools.partial(touched, window))
        wanted = firsts[step % self.steps_per_epoch - window.first_step]
        gather.touch(wanted, is_alone=True)
        yield gather.batch(wanted)
        step += 1
        while stop is None or step < stop:
            firsts = pending.result()
            first = window.epoch * self.steps_per_epoch + window.first_step
            following = first + window.step_count
            next_window = self.order.window_at(following)
            if stop is None or following < stop:
                pending = ahead.begin(functools.partial(touched, next_window))
            for at in range(step, following if stop is None else min(following, stop)):
                yield gather.batch(firsts[at - first])
            step, window = following, next_window

    # -- reading

    def _read(self, window: WindowId, memory: Window, chunks: ChunkReader) -> Window:
        rows = self.order.window_order(window, *self._streams).reshape(-1)
        if isinstance(memory, RowWindow):
            self._source.fill(rows, memory, chunks)
            return memory
        assert isinstance(self._source, PackedRows)  # no others are given a narrow window
        self._source.fill(rows, memory, chunks)
        return memory

    def _read_alone(self, step: int, chunks: ChunkReader, cut: RowCut) -> Batch:
        memory = self._memory(self.rows_per_batch)
        tokens = self.array.encoded_tokens
        more = parallel_fill.usable_threads(tokens, self.rows_per_batch) - 1
        readers = [chunks, *(ChunkReader(tokens) for _ in range(more))]
        for reader in readers:
            reader.is_brief = True  # 12 -> 9 ms for the first batch
        try:
            parallel_fill.fill(self._source, self.rows_of(step), memory, readers)
        finally:
            chunks.is_brief = False
        return memory.batch(0, self.rows_per_batch, cut)

    def _cut(self, memory: Window, window: WindowId, step: int, cut: RowCut) -> Batch:
        first = (step % self.steps_per_epoch - window.first_step) * self.rows_per_batch
        return memory.batch(first, first + self.rows_per_batch, cut)

    def _memory(self, rows: int) -> RowWindow:
        return RowWindow(rows, self.seq_len, self._source.is_padded)

    def _window_memory(self) -> Window:
        rows = self.order.window_rows // self.host_count
        is_narrow = (
            isinstance(self._source, PackedRows)
            and self.array.encoded_tokens.is_decoded
            and NarrowWindow.holds(self.array.max_token_id)
        )
        return NarrowWindow(rows, self.seq_len) if is_narrow else self._memory(rows)

    def _take_memory(self) -> Window:
        kept, self._kept = self._kept, None  # not to be found half filled after an error
        return self._window_memory() if kept is None else kept[1]

    def _take_chunks(self) -> ChunkReader:
        if self._chunks is None:
            self._chunks = ChunkReader(self.array.encoded_tokens)
        return self._chunks

    def _from_step(self, step: int, stop: int | None, prefetch: bool | None) -> Iterator[Batch]:
        if stop is not None and step >= stop:
            return
        gather = self._new_gather()
        with working_ahead(prefetch) as ahead:
            if gather is None:
                yield from self._read_ahead(step, stop, ahead)
            else:
                yield from self._gathered_ahead(gather, step, stop, ahead)

    def _read_ahead(self, step: int, stop: int | None, ahead: Ahead) -> Iterator[Batch]:
        """The batches [step, stop), stop above step, while the next window is read."""
        cut = self.new_cut()
        reader = ChunkReader(self.array.encoded_tokens)
        memories = [self._window_memory() for _ in range(1 + ahead.is_threaded)]
        window = self.order.window_at(step)
        alone = self._read_alone(step, reader, cut)  # first, for who waits
        pending = ahead.begin(functools.partial(self._read, window, memories[0], reader))
        yield alone
        del alone
        step += 1
        while stop is None or step < stop:
            memory = pending.result()
            following = window.epoch * self.steps_per_epoch + window.first_step + window.step_count
            next_window = self.order.window_at(following)
            if stop is None or following < stop:
                memories.reverse()
                pending = ahead.begin(functools.partial(self._read, next_window, memories[0], reader))
            for at in range(step, following if stop is None else min(following, stop)):
                yield self._cut(memory, window, at, cut)
            step, window = following, next_window


def _stream_count(batch_size: int, host_count: int) -> int:
    divisors = [count for count in range(1, MOST_STREAMS + 1) if batch_size % count == 0]
    fitting = [count for count in divisors if count % host_count == 0]
    return fitting[-1] if divisors[-1] in fitting else host_count


def _integer(name: str, value: Any) -> int:
    """A whole number as an int, whatever its type; ArgumentError for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be an integer, got {value!r}") from None


def _checked_step(step: int) -> int:
    step = _integer("step", step)
    if step < 0:
        raise ArgumentError(f"step must be at least 0, got {step}")
    return step


def _checked_dtype(dtype: npt.DTypeLike, max_token_id: int) -> np.dtype[Any]:
    try:
        checked = np.dtype(dtype)
    except TypeError:
        raise ArgumentError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}") from None
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
