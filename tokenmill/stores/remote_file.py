"""An object of a store, read at any offset: large requests, a few under way at once, where it is read in order; a read
anywhere else is one small request beside them.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from tokenmill.stores.errors import StoreChanged, changed
from tokenmill.stores.requests import PASSED_BYTES, REQUEST_BYTES, call, start
from tokenmill.stores.store import Bytes, Entry, Store

_AHEAD = 2  # requests under way behind the block that is read
_FIRST_BYTES = (
    128 << 10
)  # of a read that follows no other; the next in order is eight times as much, and so on
_GROWTH = 8


class _Held(NamedTuple):
    """Bytes of the object from `start` on."""

    start: int
    data: memoryview

    @property
    def stop(self) -> int:
        return self.start + len(self.data)


_NOTHING = _Held(0, memoryview(b""))


class RemoteFile:
    """See `tokenmill.stores.files.RandomFile`. Holds four large blocks at most, and a small one."""

    def __init__(self, store: Store, entry: Entry, shown: str, version: str = "") -> None:
        self._store, self._key, self.size, self._version = store, entry.key, entry.size, entry.version
        self._shown = shown  # in messages
        if version and version != entry.version:
            raise self._changed()
        # What is read in order, the block before it, since Parquet's readers go back a little, and a read elsewhere.
        self._in_order = self._before = self._aside = _NOTHING
        self._ahead: deque[tuple[int, int, Future[Bytes]]] = deque()  # (start, stop, ...)
        self._step, self._aside_bytes = REQUEST_BYTES, _FIRST_BYTES
        self._asked_stop = self._limit = 0  # where the requests under way end; none is made behind the limit

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def version(self) -> str:
        """See RandomFile."""
        return self._version

    def status(self) -> None:
        """See RandomFile."""

    def expect(self, start: int, stop: int) -> None:
        """See RandomFile; the requests begin at once, and are of one size. What begins in what is held or under way is
        read on as it was begun."""
        if self._in_order.start <= start < self._in_order.stop or self._is_next(start):
            return
        length = max(0, min(stop, self.size) - start)
        requests = max(1, -(-length // REQUEST_BYTES))
        self._begin(start, start + length, -(-length // requests))

    def readinto_at(self, offset: int, view: memoryview) -> int:
        """See RandomFile."""
        if offset >= self.size or not len(view):
            return 0
        for held in (self._in_order, self._before, self._aside):
            if held.start <= offset < held.stop:
                break
        else:
            held = self._fetch(offset, len(view))
        place = offset - held.start
        count = min(len(view), len(held.data) - place)
        if count <= 0:
            raise self._changed()  # it ends before its size of then
        view[:count] = held.data[place : place + count]
        return count

    def close(self) -> None:
        """See RandomFile."""
        self._ahead.clear()
        self._in_order = self._before = self._aside = _NOTHING

    def _fetch(self, offset: int, wanted: int) -> _Held:
        if not self._is_next(offset):
            follows = offset == self._aside.stop > 0
            self._aside_bytes = min(REQUEST_BYTES, self._aside_bytes * _GROWTH) if follows else _FIRST_BYTES
            if self._aside_bytes < REQUEST_BYTES:
                begin = (
                    offset if follows else min(offset, max(0, self.size - _FIRST_BYTES))
                )  # a footer in one
                stop = min(self.size, offset + max(wanted, self._aside_bytes))
                (block,) = call(partial(self._store.read_ranges, self._key, [(begin, stop)], self._version))
                self._aside = self._received(begin, block)
                return self._aside
            self._begin(offset, self.size, REQUEST_BYTES)
        begin, _, future = self._ahead.popleft()
        self._ask()
        self._before, self._in_order = self._in_order, self._received(begin, future.result())
        return self._in_order

    def _is_next(self, offset: int) -> bool:
        """Whether a read goes on in order, at most a little is passed over, so that the next request has it."""
        if not self._ahead:
            return False
        begin, stop, _ = self._ahead[0]
        return begin <= offset < min(stop, begin + PASSED_BYTES)

    def _received(self, begin: int, block: Bytes) -> _Held:
        if not len(block):
            raise self._changed()
        return _Held(begin, memoryview(block))

    def _begin(self, begin: int, limit: int, step: int) -> None:
        self._ahead.clear()
        self._asked_stop, self._limit, self._step = begin, limit, step
        self._ask()

    def _ask(self) -> None:
        """Have requests under way up to the limit."""
        while self._asked_stop < self._limit and len(self._ahead) < _AHEAD:
            begin, stop = self._asked_stop, min(self._asked_stop + self._step, self._limit)
            read = partial(self._store.read, self._key, begin, stop, self._version)
            self._ahead.append((begin, stop, start(read)))
            self._asked_stop = stop

    def _changed(self) -> StoreChanged:
        return changed(self._shown)
