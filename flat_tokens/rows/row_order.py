"""In which order rows are read: pure arithmetic on row numbers, without data.

Rows are dealt to *streams*: the rows [s * q, (s + 1) * q) of a global batch come from stream s,
q = batch_size / streams. Hosts have no part in the order: each takes its rows of the global batch, so any number of
hosts that divides batch_size sees the same batches. A host reads the streams that its rows come from; where the number
of hosts divides the streams, no two hosts read the same one.

Two levels of shuffling keep the reading cheap: *blocks* of neighbouring rows are
permuted, and in each stream the rows of a *window* of a few blocks are permuted among themselves.

An epoch e, for R rows a block: of the whole blocks, permuted with derive_key(seed, e, 1), the first
streams * F are dealt in turns, stream s gets the s-th, the (s + streams)-th and so on, F each: as many as
there are, or one less if some rows fill no batch. What is left, less than 2 * streams + 1 blocks, is the
tail: its rows are permuted with derive_key(seed, e, 2) and follow, an equal share for each stream. A window
takes its steps' positions of each stream and permutes them with derive_key(seed, e, 3, stream, window).

Invariant: every epoch has steps_per_epoch batches of different rows, so all rows but row_count % batch_size,
and those left out are others in each epoch (tests/flat_tokens/test_row_order.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import ArgumentError
from flat_tokens.rows.permutation import LARGEST_SEED, derive_key, permute

BLOCKS, TAIL, WINDOW = 1, 2, 3

Int64 = npt.NDArray[np.int64]


class TooFewRowsError(ArgumentError):
    """Rows that fill no batch."""

    def __init__(self, row_count: int, batch_size: int) -> None:
        if row_count:
            message = (
                f"{row_count} rows do not fill a batch of {batch_size}; take a smaller batch_size or seq_len"
            )
        else:
            message = (
                "there are too few tokens for a row; take a smaller seq_len, or a split that has more tokens"
            )
        super().__init__(message)
        self.row_count = row_count


@dataclass(frozen=True)
class WindowId:
    """A stretch of steps whose rows are read together. first_step: within the epoch; index: of the epoch's
    windows."""

    epoch: int
    index: int
    first_step: int
    step_count: int


@dataclass(frozen=True)
class RowOrder:
    """Which row is in which batch. `RowOrder.create` chooses what is not said; see the module for the rules.

    block_rows: a multiple of batch_size / streams. window_blocks: blocks of each stream in a window."""

    row_count: int
    batch_size: int
    streams: int
    block_rows: int
    window_blocks: int
    seed: int
    shuffle: bool = True

    @classmethod
    def create(
        cls,
        row_count: int,
        batch_size: int,
        streams: int,
        block_rows: int,
        shuffle_blocks: int,
        seed: int,
        shuffle: bool = True,
        *,
        may_be_empty: bool = False,
    ) -> RowOrder:
        """An order with blocks of at least block_rows rows and windows of shuffle_blocks blocks over all
        streams, at least one each; ArgumentError for numbers outside their ranges, no rows being one of them unless
        may_be_empty."""
        for name, value in (("batch_size", batch_size), ("streams", streams), ("block_rows", block_rows)):
            if value < 1:
                raise ArgumentError(f"{name} must be at least 1, got {value}")
        if shuffle_blocks < 1:
            raise ArgumentError(f"shuffle_blocks must be at least 1, got {shuffle_blocks}")
        if batch_size % streams:
            raise ArgumentError(f"streams must divide batch_size = {batch_size}, got {streams}")
        if not 0 <= seed <= LARGEST_SEED:
            raise ArgumentError(f"seed must be in [0, 2^64), got {seed}")
        if row_count < batch_size and (row_count or not may_be_empty):
            raise TooFewRowsError(row_count, batch_size)
        rows_per_stream = batch_size // streams
        rounded = -(-block_rows // rows_per_stream) * rows_per_stream
        return cls(row_count, batch_size, streams, rounded, max(1, shuffle_blocks // streams), seed, shuffle)

    @property
    def rows_per_stream(self) -> int:
        """Rows of each stream in a batch."""
        return self.batch_size // self.streams

    @property
    def steps_per_epoch(self) -> int:
        """Full batches in an epoch."""
        return self.row_count // self.batch_size

    @property
    def window_steps(self) -> int:
        """Steps a window has, but for the last of an epoch."""
        return self.window_blocks * self.block_rows // self.rows_per_stream

    @property
    def window_rows(self) -> int:
        """Rows a window has at most, over all streams."""
        return min(self.window_steps, self.steps_per_epoch) * self.batch_size

    def window_at(self, step: int) -> WindowId:
        """The window with a step, counted from the first epoch on."""
        epoch, inside = divmod(step, self.steps_per_epoch)
        index = inside // self.window_steps
        first = index * self.window_steps
        return WindowId(epoch, index, first, min(self.window_steps, self.steps_per_epoch - first))

    def window_order(
        self, window: WindowId, first_stream: int, stop_stream: int, steps: tuple[int, int] | None = None
    ) -> Int64:
        """The rows of a window in the order of the batches, int64[steps, streams, rows_per_stream], of the
        streams [first_stream, stop_stream). steps: [first, stop) of the window's; all of them by default. Cost: 40 us
        for the keys and 25 ns a row."""
        streams = np.arange(first_stream, stop_stream, dtype=np.int64)[:, None]
        count = self.rows_per_stream
        first_step, stop_step = (0, window.step_count) if steps is None else steps
        positions = np.arange(first_step * count, stop_step * count, dtype=np.int64)
        first = window.first_step * count
        if not self.shuffle:
            turns = (positions + first) // count
            rows = turns * (self.batch_size - count) + streams * count + positions + first
        else:
            keys = [
                [derive_key(self.seed, window.epoch, WINDOW, stream, window.index)]
                for stream in range(first_stream, stop_stream)
            ]
            places = np.broadcast_to(positions, (len(streams), len(positions)))
            places = permute(places, window.step_count * count, np.array(keys, dtype=np.uint64))
            rows = self._rows_at(window, streams, places + first)
        per_stream: Int64 = rows.reshape(len(streams), stop_step - first_step, count)
        return per_stream.transpose(1, 0, 2)

    def _rows_at(self, window: WindowId, streams: Int64, positions: Int64) -> Int64:
        """The rows at some positions of some streams that lie in a window, before its permutation; int64[streams, n]
        of int64[streams, 1] and int64[streams, n]."""
        whole = self.row_count // self.block_rows
        left_out = self.row_count % self.batch_size
        dealt = max(0, whole // self.streams - (1 if left_out else 0))
        in_blocks = dealt * self.block_rows
        key = derive_key(self.seed, window.epoch, BLOCKS)
        first = window.first_step * self.rows_per_stream
        stop = first + window.step_count * self.rows_per_stream
        first_turn, stop_turn = first // self.block_rows, -(-min(stop, in_blocks) // self.block_rows)
        rows = np.empty_like(positions)
        is_late = positions >= in_blocks
        if first_turn < stop_turn:  # few blocks, many rows: each is permuted once
            blocks = permute(
                np.arange(first_turn, stop_turn) * self.streams + streams, whole, key
            )  # [streams, turns]
            turns = np.minimum(positions // self.block_rows, stop_turn - 1)
            of_stream = np.arange(len(streams))[:, None] * blocks.shape[1] - first_turn
            rows = (blocks.reshape(-1)[turns + of_stream] - turns) * self.block_rows + positions
        if stop > in_blocks and is_late.any():
            tail_first = dealt * self.streams
            tail_count = self.row_count - tail_first * self.block_rows
            share = self.steps_per_epoch * self.rows_per_stream - in_blocks
            places = (streams * share + positions - in_blocks)[is_late]
            places = permute(places, tail_count, derive_key(self.seed, window.epoch, TAIL))
            tail, inside = np.divmod(places, self.block_rows)
            tail += tail_first
            is_whole = tail < whole  # the last block, if it is not, keeps its place
            if is_whole.any():
                tail[is_whole] = permute(tail[is_whole], whole, key)
            rows[is_late] = tail * self.block_rows + inside
        return rows


@dataclass(frozen=True)
class HostOrder:
    """The part of one host: the rows [first_row, stop_row) of each global batch, and padding_rows rows of padding,
    whose number is row_count, that give the batches of all hosts the same shape."""

    order: RowOrder
    first_row: int
    stop_row: int
    padding_rows: int = 0

    @classmethod
    def of(cls, order: RowOrder, host_index: int, host_count: int) -> HostOrder:
        """Equal parts for all hosts, the last of them padded where host_count does not divide batch_size."""
        share = -(-order.batch_size // host_count)
        first = min(host_index * share, order.batch_size)
        stop = min(first + share, order.batch_size)
        return cls(order, first, stop, share - (stop - first))

    @property
    def rows_per_batch(self) -> int:
        """Rows of this host in a batch."""
        return self.stop_row - self.first_row + self.padding_rows

    @property
    def first_stream(self) -> int:
        """The stream of the first row."""
        return self.first_row // self.order.rows_per_stream

    @property
    def stop_stream(self) -> int:
        """The stream behind that of the last row."""
        return -(-self.stop_row // self.order.rows_per_stream)

    @property
    def window_rows(self) -> int:
        """Rows of this host that a window has at most."""
        return self.order.window_rows // self.order.batch_size * self.rows_per_batch

    def rows(self, window: WindowId) -> Int64:
        """Which rows this host has in each batch of a window, int64[steps, rows_per_batch], contiguous."""
        return self._own_rows(window, (0, window.step_count))

    def rows_at(self, step: int) -> Int64:
        """Which rows this host has in the batch of a step, int64[rows_per_batch]."""
        window = self.order.window_at(step)
        place = self.place(step, window)
        return self._own_rows(window, (place, place + 1)).reshape(-1)

    def place(self, step: int, window: WindowId) -> int:
        """The place of a step among those of its window."""
        return step % self.order.steps_per_epoch - window.first_step

    def steps_of(self, window: WindowId) -> tuple[int, int]:
        """The steps [first, stop) of a window, counted from the first epoch on."""
        first = window.epoch * self.order.steps_per_epoch + window.first_step
        return first, first + window.step_count

    def _own_rows(self, window: WindowId, steps: tuple[int, int]) -> Int64:
        """The rows of this host in the steps [first, stop) of a window, int64[steps, rows_per_batch], contiguous."""
        own = np.full((steps[1] - steps[0], self.rows_per_batch), self.order.row_count, dtype=np.int64)
        count = self.stop_row - self.first_row
        if count:
            rows = self.order.window_order(window, self.first_stream, self.stop_stream, steps)
            first = self.first_row - self.first_stream * self.order.rows_per_stream
            own[:, :count] = rows.reshape(len(rows), -1)[:, first : first + count]
        return own
