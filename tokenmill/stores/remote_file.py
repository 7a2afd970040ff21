"""An object of a store, read at any offset.

Sequential reads use large requests, two of them ahead of the reader. Any other read is one small request, and each
read that continues it is eight times as large until it counts as sequential.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from functools import partial

from tokenmill.stores.errors import changed
from tokenmill.stores.files import RandomFile
from tokenmill.stores.requests import PASSED_BYTES, REQUEST_BYTES, call, start
from tokenmill.stores.store import Bytes, Entry, Store

_AHEAD = 2
_FIRST_BYTES = 128 << 10
_GROWTH = 8


_Block = tuple[int, memoryview]  # bytes from an offset on


class RemoteFile(RandomFile):
    """An object as a RandomFile. Holds up to four large blocks and a small one.

    shown: the URL in messages.
    """

    def __init__(self, store: Store, entry: Entry, shown: str) -> None:
        self._store, self._key, self.size, self._version = store, entry.key, entry.size, entry.version
        self._shown = shown
        self._blocks: deque[_Block] = deque(maxlen=2)  # Parquet readers step back a little
        self._aside: _Block = (0, memoryview(b""))  # the last small request
        self._aside_bytes = _FIRST_BYTES
        self._ahead: deque[tuple[int, int, Future[Bytes]]] = deque()  # (start, stop, ...)
        self._offset = self._limit = 0  # of the next large request, and the end of the last one

    def expect(self, start: int, stop: int) -> None:
        """Prefetch (see RandomFile), unless `start` is in the block read last or in the next one."""
        is_held = bool(self._blocks) and _contains(self._blocks[-1], start)
        if not is_held and not self._is_next(start):
            self._prefetch(start, min(stop, self.size))

    def readinto_at(self, offset: int, view: memoryview) -> int:
        if offset >= self.size or not len(view):
            return 0
        held = (block for block in (*self._blocks, self._aside) if _contains(block, offset))
        start, block = next(held, None) or self._read_block(offset, len(view))
        data = block[offset - start :][: len(view)]
        if not data:
            raise changed(self._shown)  # the object is shorter than when it was listed
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._ahead.clear()
        self._blocks.clear()
        self._aside = (0, memoryview(b""))

    def _read_block(self, offset: int, wanted: int) -> _Block:
        if not self._is_next(offset):
            continues = offset == self._aside[0] + len(self._aside[1]) > 0
            self._aside_bytes = self._aside_bytes * _GROWTH if continues else _FIRST_BYTES
            if self._aside_bytes < REQUEST_BYTES:
                # Footers are read in parts, so a read near the end starts early enough to cover all of it.
                start = offset if continues else min(offset, max(0, self.size - _FIRST_BYTES))
                stop = min(self.size, offset + max(wanted, self._aside_bytes))
                (data,) = call(partial(self._store.read_ranges, self._key, [(start, stop)], self._version))
                self._aside = (start, memoryview(data))
                return self._aside
            self._prefetch(offset, self.size)
        start, _, future = self._ahead.popleft()
        self._send()
        self._blocks.append((start, memoryview(future.result())))
        return self._blocks[-1]

    def _is_next(self, offset: int) -> bool:
        """Return whether a read continues in the next large request, at most a small gap after its start."""
        if not self._ahead:
            return False
        start, stop, _ = self._ahead[0]
        return start <= offset < min(stop, start + PASSED_BYTES)

    def _prefetch(self, start: int, stop: int) -> None:
        self._ahead.clear()
        self._offset, self._limit = start, stop
        self._send()

    def _send(self) -> None:
        while self._offset < self._limit and len(self._ahead) < _AHEAD:
            begin, stop = self._offset, min(self._offset + REQUEST_BYTES, self._limit)
            future = start(partial(self._store.read, self._key, begin, stop, self._version))
            self._ahead.append((begin, stop, future))
            self._offset = stop


def _contains(block: _Block, offset: int) -> bool:
    return block[0] <= offset < block[0] + len(block[1])
