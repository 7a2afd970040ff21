"""The batches of steps whose rows are read a window at a time into memory, each zarr chunk once a window.

Steps in a row share the reading of their window; a step that does not follow the one before is read alone. Where a
thread works ahead, two windows are in memory: one is filled while the other is used. From a store, the requests of the
WINDOWS_AHEAD windows behind the one that is filled are under way meanwhile, and a mask is asked for beside the tokens.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt

from flat_tokens.loading.batch import Batch
from flat_tokens.masks import put_trained
from flat_tokens.rows.ahead import Ahead
from flat_tokens.rows.row_cut import RowCut
from flat_tokens.rows.row_order import HostOrder, WindowId
from flat_tokens.rows.row_source import ChunkReader, RowSource, TokenRanges
from flat_tokens.rows.row_window import RowWindow
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.pieces import entered

# A window is decoded in about the time of one request; one more covers how much the times of requests differ.
WINDOWS_AHEAD = 2
_NOTHING = nullcontext()
Fetched = dict[WindowId, AbstractContextManager[None]]


class WindowSteps:
    """Batches of one host's rows of `source`, as `cut` makes them. mask: of the tokens, None where all are to be
    learned. For one thread at a time."""

    def __init__(
        self, tokens: Elements, source: RowSource, host: HostOrder, cut: RowCut, mask: Elements | None = None
    ) -> None:
        self._tokens = tokens
        self._source = source
        self._host = host
        self._cut = cut
        self._mask = mask
        # Where rows must be looked up in seq_starts, to know them takes requests as well.
        self._windows_ahead = WINDOWS_AHEAD if tokens.is_remote and not source.reads_starts else 0
        self._kept: tuple[WindowId, RowWindow] | None = None
        self._reader: ChunkReader | None = None

    def batch(self, step: int, follows: bool) -> Batch:
        """The batch of a step; follows: whether the one before was asked for last, so that more may be expected."""
        window = self._host.order.window_at(step)
        if self._kept is None or self._kept[0] != window:
            if not follows:
                return self._batch_alone(step)
            kept, self._kept = self._kept, None  # not to be found half filled after an error
            self._kept = window, self.read_window(window, None if kept is None else kept[1])
        return self._batch_of(self._kept[1], window, step)

    def run(self, step: int, stop: int | None, ahead: Ahead) -> Iterator[Batch]:
        """The batches [step, stop) while the next window is read."""
        if stop is not None and step >= stop:
            return
        host = self._host
        alone = self._batch_alone(step)  # before a window is read, so that the first batch is there soon
        step += 1
        window = host.order.window_at(step)
        pending = None
        fetched: Fetched = {}
        if stop is None or step < stop:
            memories = [self._new_memory() for _ in range(1 + ahead.is_threaded)]
            later = self._windows_behind(window, stop)
            pending = ahead.begin(functools.partial(self._read_ahead, window, memories[0], later, fetched))
        yield alone
        del alone
        while pending is not None:
            memory = pending.result()
            _, following = host.steps_of(window)
            next_window = host.order.window_at(following)
            pending = None
            if stop is None or following < stop:
                memories.reverse()
                later = self._windows_behind(next_window, stop)
                pending = ahead.begin(
                    functools.partial(self._read_ahead, next_window, memories[0], later, fetched)
                )
            for at in range(step, following if stop is None else min(following, stop)):
                yield self._batch_of(memory, window, at)
            step, window = following, next_window

    def read_window(
        self,
        window: WindowId,
        memory: RowWindow | None = None,
        fetched: AbstractContextManager[None] | None = None,
    ) -> RowWindow:
        """All rows of a window for this host, in the order of the steps; memory: that of another window. fetched: see
        _fetch."""
        memory = self._new_memory() if memory is None else memory
        self._fill(self._host.rows(window).reshape(-1), memory, fetched)
        return memory

    def _windows_behind(self, window: WindowId, stop: int | None) -> list[WindowId]:
        """Those behind a window whose requests are to be under way while it is read."""
        found: list[WindowId] = []
        for _ in range(self._windows_ahead):
            _, following = self._host.steps_of(window)
            if stop is not None and following >= stop:
                break
            window = self._host.order.window_at(following)
            found.append(window)
        return found

    def _read_ahead(
        self, window: WindowId, memory: RowWindow, later: Sequence[WindowId], fetched: Fetched
    ) -> RowWindow:
        """See read_window. later: windows whose requests are sent first; fetched: those that were, by their windows."""
        if self._windows_ahead:
            for other in (window, *later):
                if other not in fetched:
                    rows = self._host.rows(other).reshape(-1)
                    fetched[other] = self._fetch(self._source.token_ranges(rows))
        return self.read_window(window, memory, fetched.pop(window, None))

    def _fetch(self, ranges: TokenRanges) -> AbstractContextManager[None]:
        """Send the requests for the tokens and their mask. The thread that reads them later enters this context.

        The token in front of each range is asked for, too.
        """
        starts, stops = ranges.starts, ranges.stops
        contexts = [self._tokens.expecting(np.maximum(starts - 1, 0), stops, at_once=True)]
        if self._mask is not None:
            contexts.append(self._mask.expecting(starts, stops, at_once=True))
        return entered(contexts)

    @property
    def length(self) -> int:
        """Tokens a row."""
        return self._source.length

    @property
    def is_padded(self) -> bool:
        """Whether rows may be shorter."""
        return self._source.is_padded

    @property
    def is_masked(self) -> bool:
        """Whether there are tokens that are not to be learned."""
        return self._mask is not None

    def fill_part(self, rows: npt.NDArray[np.int64], memory: RowWindow, first: int, stop: int) -> None:
        """Put some rows to the places [first, stop) of a window, of which they may need all."""
        part = memory.part(first, stop, self.is_padded)
        self._fill(rows, part)
        memory.firsts[first:stop] = part.firsts + first * (self.length + 1)

    def read_rows(self, rows: npt.NDArray[np.int64]) -> RowWindow:
        """Some rows, in the order given, for one who waits for them and for no others: of zarr chunks only what is in
        front is decoded (ChunkReader.is_brief)."""
        memory = RowWindow(len(rows), self._source.length, self._source.is_padded, self.is_masked)
        chunks = self._chunks()
        chunks.is_brief = True
        try:
            self._fill(rows, memory)
        finally:
            chunks.is_brief = False
        return memory

    def _batch_alone(self, step: int) -> Batch:
        rows = self._host.rows_at(step)
        return self.read_rows(rows).batch(0, len(rows), self._cut)

    def _batch_of(self, memory: RowWindow, window: WindowId, step: int) -> Batch:
        count = self._host.rows_per_batch
        first = self._host.place(step, window) * count
        return memory.batch(first, first + count, self._cut)

    def _new_memory(self) -> RowWindow:
        return RowWindow(self._host.window_rows, self._source.length, self._source.is_padded, self.is_masked)

    def _fill(
        self,
        rows: npt.NDArray[np.int64],
        memory: RowWindow,
        fetched: AbstractContextManager[None] | None = None,
    ) -> None:
        ranges = None if self._mask is None else self._source.token_ranges(rows)
        if fetched is None and ranges is not None and self._tokens.is_remote:
            fetched = self._fetch(ranges)
        with fetched or _NOTHING:
            self._source.fill(rows, memory, self._chunks())
            if memory.trained is None:
                return
            if self._mask is None or ranges is None:
                memory.trained[:] = memory.all_trained()
            else:
                put_trained(self._mask, ranges, memory.trained)

    def _chunks(self) -> ChunkReader:
        if self._reader is None:
            self._reader = ChunkReader(self._tokens)
        return self._reader
