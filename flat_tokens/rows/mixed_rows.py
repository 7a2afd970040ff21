"""The rows of the datasets of a mixture, stream by stream, a part of a window at a time.

Streams of a mixture reach a window of a dataset at different steps, and many datasets would be many windows in memory.
So each stream of each dataset has a part of its own of the window that it is in, as many steps of it as memory allows,
and the next part is read when this one is used up. All parts lie in one window, so a batch is cut at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flat_tokens.loading.batch import Batch
from flat_tokens.rows.row_cut import RowCut
from flat_tokens.rows.row_order import RowOrder
from flat_tokens.rows.row_source import Int64
from flat_tokens.rows.row_window import RowWindow
from flat_tokens.rows.window_steps import WindowSteps


class MixedRows:
    """The streams [first_stream, stop_stream) of datasets whose orders have one row a stream in each step. most_tokens:
    in memory, but one row a stream at least. For one thread at a time."""

    def __init__(
        self,
        readers: Sequence[WindowSteps],
        orders: Sequence[RowOrder],
        first_stream: int,
        stop_stream: int,
        most_tokens: int,
    ) -> None:
        self._readers = readers
        self._orders = orders
        self._first_stream = first_stream
        self._length = readers[0].length
        self._is_padded = any(reader.is_padded for reader in readers)
        self._is_masked = any(reader.is_masked for reader in readers)
        streams = stop_stream - first_stream
        most = max(1, most_tokens // (len(orders) * streams * (self._length + 1)))
        self._epoch_steps = np.array([order.steps_per_epoch for order in orders])
        steps = np.array([min(order.window_steps, order.steps_per_epoch) for order in orders])
        self._window_steps = steps
        self._part_steps = -(-steps // -(-steps // most))
        self._begins = np.cumsum(self._part_steps * streams) - self._part_steps * streams
        self._held = np.full((len(orders), streams), -1, dtype=np.int64)  # which part each stream has
        self._memory: RowWindow | None = None

    def batch(self, chosen: Int64, streams: Int64, places: Int64, follows: bool, cut: RowCut) -> Batch:
        """The rows at places[i] of streams[i] of dataset chosen[i]; of one stream of a dataset they rise. follows:
        whether what comes next will be asked for as well, so that whole parts are read."""
        epochs, inside = np.divmod(places, self._epoch_steps[chosen])
        windows, steps = np.divmod(inside, self._window_steps[chosen])
        numbers, at = np.divmod(steps, self._part_steps[chosen])
        parts = epochs * self._epoch_steps[chosen] + windows * self._window_steps[chosen] + numbers
        slots = streams - self._first_stream
        rows = self._begins[chosen] + slots * self._part_steps[chosen] + at
        memory = self._kept()
        is_left = self._held[chosen, slots] != parts
        if not is_left.any():
            return memory.batch_of(rows, cut)
        found = self._new_window(len(rows))
        is_left[:] = True
        while is_left.any():
            here = np.flatnonzero(is_left & (self._held[chosen, slots] == parts))
            found.take(here, memory, rows[here])
            is_left[here] = False
            left = np.flatnonzero(is_left)
            if follows:  # a stream may need a part and the next one
                _, firsts = np.unique(chosen[left] * self._held.shape[1] + slots[left], return_index=True)
                for i in left[firsts].tolist():
                    self._read(int(chosen[i]), int(slots[i]), int(parts[i]), int(places[i]), int(numbers[i]))
                continue
            for dataset in np.unique(chosen[left]).tolist():
                here = left[chosen[left] == dataset]
                wanted = [
                    self._rows(dataset, int(streams[i]), int(places[i]), int(steps[i]), int(steps[i]) + 1)
                    for i in here.tolist()
                ]
                alone = self._readers[dataset].read_rows(np.concatenate(wanted))
                found.take(here, alone, np.arange(len(here)))
            break
        return found.batch(0, len(rows), cut)

    def _kept(self) -> RowWindow:
        if self._memory is None:
            self._memory = self._new_window(int((self._part_steps * self._held.shape[1]).sum()))
        return self._memory

    def _new_window(self, rows: int) -> RowWindow:
        window = RowWindow(rows, self._length, self._is_padded, self._is_masked)
        if window.lengths is not None:
            window.lengths[:] = self._length
        return window

    def _read(self, dataset: int, slot: int, part: int, place: int, number: int) -> None:
        self._held[dataset, slot] = -1  # not to be found half filled after an error
        count = int(self._part_steps[dataset])
        stop = min((number + 1) * count, self._orders[dataset].window_at(place).step_count)
        rows = self._rows(dataset, self._first_stream + slot, place, number * count, stop)
        begin = int(self._begins[dataset]) + slot * count
        self._readers[dataset].fill_part(rows, self._kept(), begin, begin + count)
        self._held[dataset, slot] = part

    def _rows(self, dataset: int, stream: int, place: int, first: int, stop: int) -> Int64:
        """The rows of some steps of the window with a place."""
        order = self._orders[dataset]
        return order.window_order(order.window_at(place), stream, stream + 1, (first, stop)).reshape(-1)
