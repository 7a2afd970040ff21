"""The order of rows: pure arithmetic on row numbers, without data.

A *block* is `block_rows` neighbouring rows, read together. A batch must look like a draw from the whole corpus, so it
takes its rows from as many blocks as possible: from each *lane* in turn, one row at a time. A lane shuffles
`window_blocks` blocks at a time, its *window*. Lanes belong to *streams*; each stream supplies an equal, fixed part of
every batch, so hosts that read different streams read different data. The number of hosts never changes the order.

Draw d of stream s, counted from the first epoch, is this row, for n rows per stream and epoch and `lanes` per stream:

1. epoch, d = divmod(d, n). Lane d % lanes takes the draw; it is the lane's draw number turn = d // lanes.
2. The epoch's blocks are permuted by derive_key(seed, epoch, BLOCKS) and laid end to end; the last block, if it is
   shorter, goes to a place chosen by derive_key(seed, epoch, SHORT). Each lane owns a span of these rows.
3. The lane's span is cut into windows of window_blocks blocks. The first window is shorter by an offset. Offsets are
   spread evenly over the lanes by derive_key(seed, OFFSET), so that lanes reach the ends of their windows at different
   times: rows are read steadily, and on average half of each window is still in memory. An offset is a number of
   blocks; if windows have one block, it is a number of rows, which the lane draws last.
4. A window is cut into pieces of block_rows rows, which take turns. Each piece is permuted by derive_key(seed, epoch,
   WINDOW, lane, first place of the piece).

Invariant: in each epoch the streams draw distinct rows. The rows left out, fewer than one batch, differ per epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import ArgumentError
from flat_tokens.format import Int64
from flat_tokens.order.permutation import derive_key, derive_keys, permute

BLOCKS, SHORT, WINDOW, OFFSET = 1, 2, 3, 4
MAX_STREAMS = 64
MIN_LANE_BLOCKS = 16  # a lane's first and last block are shared with its neighbours, and read twice


class TooFewRowsError(ArgumentError):
    """The rows do not fill a batch."""

    def __init__(self, row_count: int, batch_size: int, is_empty: bool = False) -> None:
        if is_empty:
            message = "array: the split is empty. Use a split with tokens."
        elif row_count:
            message = (
                f"batch_size: must be at most {row_count}, the rows of the split (got {batch_size}). "
                "Use a smaller batch_size or seq_len."
            )
        else:
            message = (
                "seq_len: the split has too few tokens for a row. "
                "Use a smaller seq_len or a split with more tokens."
            )
        super().__init__(message)
        self.row_count = row_count


def stream_count(batch_size: int, most: int) -> int:
    """The largest divisor of batch_size that is at most `most` and MAX_STREAMS; 1 if there is no other."""
    return max(count for count in range(1, max(1, min(MAX_STREAMS, most)) + 1) if batch_size % count == 0)


@dataclass(frozen=True)
class RowOrder:
    """Which row each draw of a stream is. `RowOrder.create` chooses the lanes; the module states the rules.

    row_count: rows, numbered from 0.
    draws: draws per stream and epoch; streams * draws <= row_count.
    streams: number of streams.
    lanes: lanes per stream.
    block_rows: rows per block.
    window_blocks: blocks that a lane shuffles at a time.
    seed: in [0, 2^64).
    shuffle: False keeps the order of the rows; there is one stream with one lane then.
    is_staggered: whether lanes reach the ends of their windows at different times.
    """

    row_count: int
    draws: int
    streams: int
    lanes: int
    block_rows: int
    window_blocks: int
    seed: int
    shuffle: bool = True
    is_staggered: bool = True

    @classmethod
    def create(
        cls,
        row_count: int,
        draws: int,
        streams: int,
        block_rows: int,
        shuffle_blocks: int,
        seed: int,
        shuffle: bool = True,
    ) -> RowOrder:
        """An order that shuffles about shuffle_blocks blocks at a time over all streams, at least one per stream."""
        blocks = -(-row_count // block_rows)
        lanes, window_blocks = 1, min(shuffle_blocks, blocks + 1)
        is_staggered = shuffle and 2 * blocks > shuffle_blocks  # otherwise all of it fits into memory
        if is_staggered:
            most = max(1, min(shuffle_blocks, blocks // MIN_LANE_BLOCKS))
            lanes = max(1, shuffle_blocks // (streams * -(-shuffle_blocks // most)))
            # If all lanes opened a window at once, this many blocks more would be in memory.
            window_blocks = max(1, round(shuffle_blocks / (streams * lanes + 1)))
        return cls(row_count, draws, streams, lanes, block_rows, window_blocks, seed, shuffle, is_staggered)

    @property
    def window_rows(self) -> int:
        """The most rows that a window of a lane has."""
        return min(self.block_rows * self.window_blocks, -(-self.draws // self.lanes))

    @property
    def lane_count(self) -> int:
        """Lanes of all streams."""
        return self.streams * self.lanes

    @property
    def short_block(self) -> tuple[int, int]:
        """The number of the block that has fewer rows, and how many it has; past the last block and 0 for none."""
        return divmod(self.row_count, self.block_rows)

    def short_place(self, epoch: int) -> int:
        """The place of the short block among the permuted blocks of an epoch."""
        whole, rows = self.short_block
        if not self.shuffle or not rows:
            return whole
        return int(permute(0, whole + 1, derive_key(self.seed, epoch, SHORT)))


@dataclass(frozen=True)
class Draws:
    """Some draws and their windows; each field but `orders` is int64[draws].

    orders: the orders that `members` counts.
    members: which order each draw is from.
    streams, draws: which draw.
    lanes: the lane, counted over all streams of the order.
    epochs: the epoch.
    places: the place of the draw among the epoch's permuted rows, before the permutation of its window.
    begins, ends: the window's places [begins, ends). The lane draws them one after the other.
    """

    orders: Sequence[RowOrder]
    members: Int64
    streams: Int64
    draws: Int64
    lanes: Int64
    epochs: Int64
    places: Int64
    begins: Int64
    ends: Int64

    @classmethod
    def of(cls, orders: Sequence[RowOrder], members: Int64, streams: Int64, draws: Int64) -> Draws:
        """Draws draws[i] of streams[i] of orders[members[i]]."""

        def of_member(name: str) -> Int64:
            return np.array([getattr(order, name) for order in orders], dtype=np.int64)[members]

        per_epoch, lanes, block_rows = of_member("draws"), of_member("lanes"), of_member("block_rows")
        epochs, inside = np.divmod(draws, per_epoch)
        turns, lane = np.divmod(inside, lanes)
        rows, longer = np.divmod(per_epoch, lanes)  # the first `longer` lanes of a stream have one row more
        first = streams * per_epoch + lane * rows + np.minimum(lane, longer)
        counts = rows + (lane < longer)
        lane += streams * lanes
        per_window = of_member("window_blocks")
        offsets = np.zeros_like(draws)
        for (member,), here in _groups(members):
            order = orders[member]
            if order.is_staggered:
                key, total = derive_key(order.seed, OFFSET), order.lane_count
                spread = np.minimum(order.block_rows * order.window_blocks, counts[here])
                offsets[here] = permute(lane[here], total, key) * spread // total
        late_rows = np.where(per_window == 1, offsets, 0)
        places = first + turns + late_rows
        is_late = places >= first + counts
        places[is_late] -= counts[is_late]

        short = np.empty_like(draws)
        for (member, epoch), here in _groups(members, epochs):
            short[here] = orders[member].short_place(epoch)
        short_rows = of_member("row_count") % block_rows
        first_block = _block_at(first, short, short_rows, block_rows)
        before = first_block - offsets // block_rows  # where the first window would begin if it were complete
        block = _block_at(places, short, short_rows, block_rows)
        block -= (block - before) % per_window
        begins = np.maximum(first + late_rows, _begin_of(block, short, short_rows, block_rows))
        ends = np.minimum(first + counts, _begin_of(block + per_window, short, short_rows, block_rows))
        begins = np.where(is_late, first, begins)
        ends = np.where(is_late, first + late_rows, ends)
        return cls(orders, members, streams, draws, lane, epochs, places, begins, ends)

    def select(self, which: npt.NDArray[Any] | slice) -> Draws:
        """Some of the draws, by index, mask or slice."""
        return replace(self, **{name: getattr(self, name)[which] for name in _ARRAYS})

    def rest(self) -> tuple[Draws, Int64]:
        """All draws of each lane from here to the end of the window; and for each of them, which draw it follows."""
        counts = self.ends - self.places
        of = np.repeat(np.arange(len(counts)), counts)
        later = counting(counts)
        found = self.select(of)
        lanes = np.array([order.lanes for order in self.orders])[found.members]
        return replace(found, places=found.places + later, draws=found.draws + later * lanes), of

    def rows(self) -> Int64:
        """The row of each draw, int64[draws]. Cost: 0.2 us per draw."""
        rows = np.empty_like(self.places)
        block_rows = np.array([order.block_rows for order in self.orders], dtype=np.int64)[self.members]
        first, inside, sizes = _interleaved(self.places - self.begins, self.ends - self.begins, block_rows)
        first += self.begins
        for (member, epoch, size), here in _groups(self.members, self.epochs, sizes):
            order = self.orders[member]
            if not order.shuffle:
                rows[here] = self.places[here]
                continue
            keys = derive_keys(derive_key(order.seed, epoch, WINDOW), self.lanes[here], first[here])
            within = permute(inside[here], size, keys)
            rows[here] = _permuted_blocks(order, epoch, first[here] + within)
        return rows


def _permuted_blocks(order: RowOrder, epoch: int, places: Int64) -> Int64:
    """The row at each place of an epoch's permuted blocks."""
    whole, short_rows = order.short_block
    short = order.short_place(epoch)
    blocks = _block_at(places, short, short_rows, order.block_rows)
    inside = places - _begin_of(blocks, short, short_rows, order.block_rows)
    is_short = blocks == short
    blocks -= blocks > short
    if whole:
        blocks = permute(np.minimum(blocks, whole - 1), whole, derive_key(order.seed, epoch, BLOCKS))
    found: Int64 = np.where(is_short, whole, blocks) * order.block_rows + inside
    return found


def _interleaved(index: Int64, count: Int64, piece: Int64) -> tuple[Int64, Int64, Int64]:
    """Cut `count` places into pieces of `piece` places, the last one shorter, and take the pieces in turn.

    For each index: the first place of its piece, how many of the piece came before, and the length of the piece.
    The first five of 7 places in pieces of 3: (0, 0, 3), (3, 0, 3), (6, 0, 1), (0, 1, 3), (3, 1, 3).
    """
    whole, rest = np.divmod(count, piece)
    is_early = index < rest * (whole + 1)  # while the last piece still takes turns
    turn_length = np.where(is_early, whole + 1, np.maximum(whole, 1))
    turn, number = np.divmod(np.where(is_early, index, index - rest * (whole + 1)), turn_length)
    inside = np.where(is_early, turn, turn + rest)
    return number * piece, inside, np.where(number < whole, piece, rest)


_ARRAYS = tuple(field.name for field in fields(Draws) if field.name != "orders")


def counting(counts: Int64) -> Int64:
    """0 to count - 1 for each count: [2, 3] -> [0, 1, 0, 1, 2]."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _groups(*keys: Int64) -> Iterator[tuple[tuple[int, ...], Int64]]:
    """The distinct combinations of some equally long keys, and the indexes at which each occurs."""
    pending: list[tuple[tuple[int, ...], Int64]] = [((), np.arange(len(keys[0])))]
    while pending:
        values, here = pending.pop()
        if len(values) == len(keys):
            yield values, here
        else:
            key = keys[len(values)][here]
            pending += [((*values, value), here[key == value]) for value in np.unique(key).tolist()]


def _block_at(places: Int64, short: Int64 | int, short_rows: Int64 | int, block_rows: Int64 | int) -> Int64:
    """Which of the permuted blocks holds each place, where block number `short` has short_rows rows."""
    first = short * block_rows
    after = short + 1 + (places - first - short_rows) // block_rows
    found: Int64 = np.where(
        places < first, places // block_rows, np.where(places < first + short_rows, short, after)
    )
    return found


def _begin_of(blocks: Int64, short: Int64 | int, short_rows: Int64 | int, block_rows: Int64 | int) -> Int64:
    """The first place of each of the permuted blocks."""
    found: Int64 = blocks * block_rows - np.where(blocks > short, block_rows - short_rows, 0)
    return found
