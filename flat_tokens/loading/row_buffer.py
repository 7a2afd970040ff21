"""The shuffle buffer: the rows of the open windows of all lanes, from one or more datasets, in one table.

Opening a window reads the rows that its lane has yet to draw, each zarr chunk once, and puts every row into a free
slot. A slot is free again once its row was in a batch. Lanes reach the ends of their windows at different times
(flat_tokens/order/row_order.py), so about half of the slots of all windows are in use at any time.

Steps are planned before they are read: the plan says which slots a batch takes and which windows must be opened for
it. From a store, later steps are planned early and the requests for their windows are sent ahead.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.format import Int64
from flat_tokens.order.row_order import Draws, RowOrder, counting
from flat_tokens.rows.batch import Batch
from flat_tokens.rows.cut import RowCut, RowTable
from flat_tokens.rows.reader import Request, RowReader
from flat_tokens.storage.mapped_stream import MappedStream

PART_TOKENS = 2**20  # tokens read at a time
GROUP_ROWS = 1024  # rows of the steps that are planned together, which costs less per step
FETCHED_TOKENS, FETCHED_ROWS = 2**22, 2**14  # limits of the requests ahead to a store


class StepGroup(NamedTuple):
    """The draws of some successive steps, equally many for each."""

    step_count: int
    draws: Draws


@dataclass(frozen=True)
class Share:
    """The rows that one user of a Loader takes from the global batches. Other rows are not read.

    per_stream: rows of each stream in a global batch.
    first_row, stop_row: the rank's rows of each global batch.
    stride: distance of the steps that are read.
    """

    per_stream: int
    first_row: int
    stop_row: int
    stride: int = 1

    def has(self, streams: Int64, draws: Int64, step_draws: Int64) -> npt.NDArray[np.bool_]:
        """Whether the rank uses draws[i] of streams[i], when it is at step_draws[i] of the same stream."""
        rows = streams * self.per_stream + draws % self.per_stream
        steps = draws // self.per_stream - step_draws // self.per_stream
        found: npt.NDArray[np.bool_] = (rows >= self.first_row) & (rows < self.stop_row)
        found &= steps % self.stride == 0
        return found


@dataclass
class _Part:
    """Rows to be read together: rows[i] of a dataset goes to slots[i]."""

    reader: RowReader
    rows: Int64
    slots: Int64
    request: Request | None = None


class RowBuffer:
    """Batches of rows of some datasets. `prepare` and `batch` may run in two threads.

    orders, readers: of each dataset.
    cut: makes the batches.
    batch_rows: draws per step.
    padding_rows: rows of padding at the end of each batch.
    share: the rows used from the windows; None for all of them.
    """

    def __init__(
        self,
        orders: Sequence[RowOrder],
        readers: Sequence[RowReader],
        cut: RowCut,
        batch_rows: int,
        padding_rows: int = 0,
        share: Share | None = None,
    ) -> None:
        self._orders = orders
        self._readers = readers
        self._cut = cut
        self._share = share
        # Each lane has a span of the table, with the slot of each row of its window. -1: no row that is waiting.
        self._counts = np.repeat(
            [order.window_rows for order in orders], [order.lane_count for order in orders]
        )
        self._columns = np.cumsum(self._counts) - self._counts
        self._waiting = np.full(int(self._counts.sum()), -1, dtype=np.int32)
        self._first_lanes = np.cumsum([0, *(order.lane_count for order in orders)])
        self._epochs = np.full(len(self._counts), -1, dtype=np.int64)
        self._begins = np.full(len(self._counts), -1, dtype=np.int64)

        in_flight = 4 * (batch_rows + GROUP_ROWS) + 2 * self.tokens_ahead // cut.length
        capacity = len(self._waiting) + in_flight
        self._table = self._new_table(capacity + 1)
        self._padding = np.full(padding_rows, capacity, dtype=np.int64)  # one slot for all of them
        self._free = np.arange(capacity, dtype=np.int32)[::-1].copy()  # a stack: few slots are ever used
        self._free_count = capacity
        self._lock = threading.Lock()

        # The slots of each step of a group, and how many parts must be read for it.
        self._planned: deque[tuple[Int64, int]] = deque()
        self._parts: deque[_Part] = deque()
        self._parts_read = 0

    @property
    def tokens_ahead(self) -> int:
        """Tokens of later steps to plan ahead of reading, so that requests to a store overlap."""
        if not any(reader.can_fetch for reader in self._readers):
            return 0
        return min(FETCHED_TOKENS, FETCHED_ROWS * self._cut.length)

    def prepare(self, groups: Sequence[StepGroup]) -> Int64:
        """Read the windows that the first group needs, and return the slots of each of its steps.

        groups: of successive steps, also from call to call. The later ones are planned ahead.
        """
        for group in groups[len(self._planned) :]:
            slots = self._plan(group.draws).reshape(group.step_count, -1)
            self._planned.append((slots, self._parts_read + len(self._parts)))
        found, parts = self._planned.popleft()
        while self._parts_read < parts:
            self._fetch_ahead()
            part = self._parts.popleft()
            part.reader.read(part.request or part.reader.request(part.rows), self._table, part.slots)
            self._parts_read += 1
        return found

    def batch(self, slots: Int64) -> Batch:
        """The batch of a prepared step. Its slots become free."""
        batch = self._table.batch(np.append(slots, self._padding), self._cut)
        self._release(slots)
        return batch

    def batch_alone(self, draws: Draws) -> Batch:
        """The batch of one step, read without opening windows."""
        count = len(draws.places)
        table = self._new_table(count + 1)
        rows = draws.rows()
        for member in np.unique(draws.members).tolist():
            here = np.flatnonzero(draws.members == member)
            reader = self._readers[member]
            reader.read(reader.request(rows[here]), table, here)
        return table.batch(np.append(np.arange(count), np.full(len(self._padding), count)), self._cut)

    # -- planning

    def _plan(self, draws: Draws) -> Int64:
        """The slots of some draws, in which their rows will be once the parts are read."""
        lanes = self._first_lanes[draws.members] + draws.lanes
        places = self._columns[lanes] + draws.places - draws.begins
        slots = np.full(len(lanes), -1, dtype=np.int64)
        left = np.arange(len(lanes))
        while True:
            of_lane = lanes[left]
            is_open = self._epochs[of_lane] == draws.epochs[left]
            is_open &= self._begins[of_lane] == draws.begins[left]
            here = left[is_open]
            slots[here] = self._waiting[places[here]]
            self._waiting[places[here]] = -1
            left = left[slots[left] < 0]
            if not len(left):
                return slots
            # A lane may need several windows for the steps; the first one comes first.
            _, first = np.unique(lanes[left], return_index=True)
            self._open(draws.select(left[first]), lanes[left[first]])

    def _open(self, draws: Draws, lanes: Int64) -> None:
        """Open the windows of some draws of different lanes, and plan to read the rows that the lanes draw next."""
        spans = np.repeat(self._columns[lanes], self._counts[lanes]) + counting(self._counts[lanes])
        waiting = self._waiting[spans]
        self._release(waiting[waiting >= 0])
        self._waiting[spans] = -1
        self._epochs[lanes], self._begins[lanes] = draws.epochs, draws.begins

        rest, of = draws.rest()
        if self._share is not None:
            is_used = self._share.has(rest.streams, rest.draws, draws.draws[of])
            rest, of = rest.select(is_used), of[is_used]
        count = len(of)
        with self._lock:
            self._free_count -= count
            slots = self._free[self._free_count : self._free_count + count].astype(np.int64)
        self._waiting[self._columns[lanes[of]] + rest.places - rest.begins] = slots

        rows = rest.rows()
        for member in np.unique(rest.members).tolist():
            here = np.flatnonzero(rest.members == member)
            here = here[np.argsort(rows[here])]
            self._plan_parts(member, rows[here], slots[here])

    def _plan_parts(self, member: int, rows: Int64, slots: Int64) -> None:
        """Cut rising rows into parts of about PART_TOKENS that end where blocks do."""
        limit = max(1, PART_TOKENS // self._cut.length)
        block_rows = self._orders[member].block_rows
        start = 0
        while start < len(rows):
            stop = min(start + limit, len(rows))
            if stop < len(rows):
                block = max(int(rows[stop]) // block_rows, int(rows[start]) // block_rows + 1)
                stop = int(np.searchsorted(rows, block * block_rows))
            self._parts.append(_Part(self._readers[member], rows[start:stop], slots[start:stop]))
            start = stop

    # -- reading

    def _fetch_ahead(self) -> None:
        tokens = 0
        for part in self._parts:
            if tokens >= FETCHED_TOKENS:
                break
            tokens += len(part.rows) * self._cut.length
            if part.request is None and part.reader.can_fetch:
                part.request = part.reader.request(part.rows)

    def _release(self, slots: npt.NDArray[np.integer]) -> None:
        with self._lock:
            self._free[self._free_count : self._free_count + len(slots)] = slots
            self._free_count += len(slots)

    def _new_table(self, slots: int) -> RowTable:
        """A table with a row of padding in its last slot."""
        sources = [reader.source for reader in self._readers]
        is_masked = any(reader.is_masked for reader in self._readers)
        table = RowTable(slots, self._cut.length, any(source.is_padded for source in sources), is_masked)
        table.tokens[-1] = sources[0].padding_id << 1
        return table


class MappedRows:
    """Rows of a raw dataset, gathered from its files, which are mapped as one array. It has the methods of RowBuffer.

    Only the first touch of a file costs time (flat_tokens/storage/mapped_stream.py), so the rows of later steps are
    touched ahead.
    """

    tokens_ahead = 0

    def __init__(self, stream: MappedStream, cut: RowCut) -> None:
        self._stream = stream
        self._cut = cut

    def prepare(self, groups: Sequence[StepGroup]) -> Int64:
        """Make the rows of the first group readable. Return the first token of each row, for each of its steps."""
        firsts = self._touch(groups[0].draws, is_alone=False)
        return firsts.reshape(groups[0].step_count, -1)

    def batch(self, firsts: Int64) -> Batch:
        """A batch of prepared rows."""
        return self._cut.batch(self._stream.values, firsts)

    def batch_alone(self, draws: Draws) -> Batch:
        """The batch of one step. Only its own rows are checked."""
        return self.batch(self._touch(draws, is_alone=True))

    def _touch(self, draws: Draws, is_alone: bool) -> Int64:
        firsts = draws.rows() * self._cut.length
        self._stream.touch(np.maximum(firsts - 1, 0), firsts + self._cut.length, is_alone)
        return firsts
