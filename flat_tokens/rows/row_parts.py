"""The rows of a dataset of a mixture, stream by stream, a part of a window at a time.

Streams of a mixture reach a window of a dataset at different steps, and many datasets would be many windows in memory.
So each stream has a part of its own of the window that it is in, as many steps of it as memory allows, and reads the
next part when it has used this one up.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flat_tokens.rows.row_order import RowOrder
from flat_tokens.rows.row_source import Int64
from flat_tokens.rows.row_window import RowWindow
from flat_tokens.rows.window_steps import WindowSteps


class RowParts:
    """The streams [first_stream, stop_stream) of an order that has one row a stream in each step. most_tokens: that a
    stream has in memory, but one row at least. For one thread at a time."""

    def __init__(
        self, reader: WindowSteps, order: RowOrder, first_stream: int, stop_stream: int, most_tokens: int
    ) -> None:
        self._reader = reader
        self._order = order
        self._first_stream = first_stream
        steps = min(order.window_steps, order.steps_per_epoch)
        parts = -(-steps * (reader.length + 1) // max(1, most_tokens))
        self._steps = -(-steps // min(parts, steps))  # of a part
        self._held = np.full(stop_stream - first_stream, -1, dtype=np.int64)  # which part each stream has
        self._memory: RowWindow | None = None

    @property
    def is_padded(self) -> bool:
        """Whether rows may be shorter than others."""
        return self._reader.is_padded

    def find(self, streams: Int64, places: Int64, follows: bool) -> Iterator[tuple[Int64, RowWindow, Int64]]:
        """(at, window, rows): rows[i] of a window is the one asked for at places[at[i]] of streams[at[i]]. follows:
        whether what comes next will be asked for as well, so that whole parts are read."""
        order, slots = self._order, streams - self._first_stream
        epochs, inside = np.divmod(places, order.steps_per_epoch)
        windows, steps = np.divmod(inside, order.window_steps)
        parts = (epochs * order.steps_per_epoch + windows) * order.window_steps + steps // self._steps
        missing = []
        for part in np.unique(parts).tolist():  # one, seldom two
            at = np.flatnonzero(parts == part)
            is_held = self._held[slots[at]] == part
            if not is_held.all():
                if not follows:
                    missing.append(at[~is_held])
                    at = at[is_held]
                else:
                    for slot in np.unique(slots[at[~is_held]]).tolist():
                        self._read(slot, part, int(places[at[0]]), int(steps[at[0]]) // self._steps)
            if len(at):
                assert self._memory is not None
                yield at, self._memory, slots[at] * self._steps + steps[at] % self._steps
        if missing:
            at = np.concatenate(missing)
            rows = [
                self._rows(int(streams[i]), int(places[i]), (int(steps[i]), int(steps[i]) + 1))
                for i in at.tolist()
            ]
            yield at, self._reader.read_rows(np.concatenate(rows)), np.arange(len(at))

    def _read(self, slot: int, part: int, place: int, number: int) -> None:
        if self._memory is None:
            count = self._steps * len(self._held)
            self._memory = RowWindow(count, self._reader.length, self._reader.is_padded)
        self._held[slot] = -1  # not to be found half filled after an error
        first = number * self._steps
        stop = min(first + self._steps, self._order.window_at(place).step_count)
        rows = self._rows(self._first_stream + slot, place, (first, stop))
        self._reader.fill_part(rows, self._memory, slot * self._steps, (slot + 1) * self._steps)
        self._held[slot] = part

    def _rows(self, stream: int, place: int, steps: tuple[int, int]) -> Int64:
        """The rows of some steps of the window with a place."""
        return self._order.window_order(self._order.window_at(place), stream, stream + 1, steps).reshape(-1)
