"""An object of a store, read at any offset: requests of 8 MiB, a few under way at once, where it is read in order; a
read anywhere else is one small request.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from functools import partial

from stores.errors import StoreChanged
from stores.requests import REQUEST_BYTES, call, start
from stores.store import Bytes, Entry, Store

_AHEAD = 3  # requests under way behind the block that is read: 32 MiB a file in all
_FIRST_BYTES = (
    128 << 10
)  # of a read that follows no other; twice in order, then eight times as much, and so on
_GROWTH = 8


class RemoteFile:
    """See `stores.files.RandomFile`. Holds one block, and has the next few under way where it reads in order."""

    def __init__(self, store: Store, entry: Entry, shown: str, version: str = "") -> None:
        self._shown = shown  # in messages
        self._store, self._key, self.size = store, entry.key, entry.size
        self._version = entry.version
        if version and version != entry.version:
            raise self._changed()
        self._start, self._block = 0, memoryview(b"")
        self._step = _FIRST_BYTES
        self._ahead: deque[tuple[int, Future[Bytes]]] = deque()
        self._asked_stop = self._limit = 0  # where the requests under way end; none is made behind the limit

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def version(self) -> str:
        """See RandomFile."""
        return self._version

    def expect(self, start: int, stop: int) -> None:
        """See RandomFile; the requests begin at once."""
        self._ahead.clear()
        self._step, self._limit = REQUEST_BYTES, min(stop, self.size)
        held_stop = self._start + len(self._block)
        self._asked_stop = held_stop if self._start <= start < held_stop else start
        self._ask()

    def readinto_at(self, offset: int, view: memoryview) -> int:
        """See RandomFile."""
        if offset >= self.size or not len(view):
            return 0
        if not self._start <= offset < self._start + len(self._block):
            self._fetch(offset, len(view))
        place = offset - self._start
        count = min(len(view), len(self._block) - place)
        view[:count] = self._block[place : place + count]
        return count

    def close(self) -> None:
        """See RandomFile."""
        self._ahead.clear()
        self._block = memoryview(b"")

    def _fetch(self, offset: int, wanted: int) -> None:
        """Make the block one that begins at `offset`."""
        if not (self._ahead and self._ahead[0][0] == offset):
            self._ahead.clear()
            if offset != self._asked_stop or offset >= self._limit:
                follows = offset == self._start + len(self._block) > 0 and offset != self._limit
                self._step, self._limit = (
                    (_FIRST_BYTES * _GROWTH, self.size) if follows else (_FIRST_BYTES, 0)
                )
            self._asked_stop = offset
            self._ask()
        if self._ahead:
            future = self._ahead.popleft()[1]
            self._ask()
            block = future.result()
        else:
            stop = min(self.size, offset + max(wanted, _FIRST_BYTES))
            self._asked_stop = stop
            (block,) = call(partial(self._store.read_ranges, self._key, [(offset, stop)], self._version))
        if not len(block):
            raise self._changed()
        self._start, self._block = offset, memoryview(block)

    def _ask(self) -> None:
        """Have requests under way up to the limit, one alone while they still grow."""
        while self._asked_stop < self._limit and len(self._ahead) < (
            _AHEAD if self._step == REQUEST_BYTES else 1
        ):
            begin, stop = self._asked_stop, min(self._asked_stop + self._step, self._limit)
            self._ahead.append(
                (begin, start(partial(self._store.read, self._key, begin, stop, self._version)))
            )
            self._asked_stop, self._step = stop, min(REQUEST_BYTES, self._step * _GROWTH)

    def _changed(self) -> StoreChanged:
        return StoreChanged(f"{self._shown} was written to since the work was planned; run the command again")
