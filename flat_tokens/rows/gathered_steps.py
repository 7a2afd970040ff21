"""The batches of steps whose tokens are mapped as one array: rows are gathered where they lie, with no window between.

What costs is the first touch of a file (flat_tokens/storage/mapped_stream.py): the files of a window are touched
together, in front of its first batch or, by a thread, while the one before is used; those of a batch alone by
themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from flat_tokens.loading.batch import Batch
from flat_tokens.rows.ahead import Ahead
from flat_tokens.rows.row_gather import RowGather
from flat_tokens.rows.row_order import HostOrder, WindowId

Int64 = npt.NDArray[np.int64]


class GatheredSteps:
    """See WindowSteps, which has the same methods. For one thread at a time."""

    def __init__(self, host: HostOrder, gather: RowGather) -> None:
        self._host = host
        self._gather = gather
        self._kept: tuple[WindowId, Int64, bool] | None = None

    def batch(self, step: int, follows: bool) -> Batch:
        """A batch whose rows are touched by themselves, or with those of all the window if it is one of many."""
        window = self._host.order.window_at(step)
        if self._kept is None or self._kept[0] != window:
            self._kept = window, self._firsts(window), False
        _, firsts, is_touched = self._kept
        wanted = firsts[self._host.place(step, window)]
        if not is_touched:
            self._gather.touch(firsts.reshape(-1) if follows else wanted, is_alone=not follows)
            self._kept = window, firsts, follows
        return self._gather.batch(wanted)

    def run(self, step: int, stop: int | None, ahead: Ahead) -> Iterator[Batch]:
        """The batches [step, stop) while the rows of the next window are touched."""
        if stop is not None and step >= stop:
            return
        host, gather = self._host, self._gather
        wanted = host.rows_at(step) * gather.length
        step += 1
        window = host.order.window_at(step)
        pending = None
        if stop is None or step < stop:
            pending = ahead.begin(functools.partial(self._touched, window))
        gather.touch(wanted, is_alone=True)
        yield gather.batch(wanted)
        while pending is not None:
            firsts = pending.result()
            first, following = host.steps_of(window)
            next_window = host.order.window_at(following)
            pending = None
            if stop is None or following < stop:
                pending = ahead.begin(functools.partial(self._touched, next_window))
            for at in range(step, following if stop is None else min(following, stop)):
                yield gather.batch(firsts[at - first])
            step, window = following, next_window

    def _touched(self, window: WindowId) -> Int64:
        firsts = self._firsts(window)
        self._gather.touch(firsts.reshape(-1))
        return firsts

    def _firsts(self, window: WindowId) -> Int64:
        """int64[steps, rows_per_batch], where the rows of a window begin in the stream."""
        return self._host.rows(window) * self._gather.length
