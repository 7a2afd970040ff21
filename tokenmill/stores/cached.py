"""A store whose objects are kept in a folder of this machine, in blocks, as they are read: for data that is read again.

    <folder>/3f/3f9c...-17        block 17 of a version of an object: a digest of the bytes, then the bytes

Only what is read of a known version is kept. The folder may be shared by processes, and they may be killed: a block
appears whole, and one that does not fit its digest is read from the store again. It stays within `limit_bytes`, but for
what the processes write between two looks at it; those that were not read for longest go first.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tokenmill.stores.store import Blocks, Bytes, Entry, Store, end_by_size
from tokenmill.stores.wrapped import WrappedStore

BLOCK_BYTES = 256 << 10  # about what a loader asks for at once
DIGEST_BYTES = 16
KEPT_SHARE = 7 / 8  # of the limit, after a look at the folder
LOOK_SHARE = 1 / 32  # of the limit: written by a process between two looks
READ_SECONDS = 60.0  # a block that was read since then need not be told apart
ABANDONED_SECONDS = 3600.0  # what is still unfinished then is of a process that was killed
_TEMPORARY = ".tmp-"


class CachedStore(WrappedStore):
    """`store`, read through a cache in `folder`, which is made. Picklable; safe to use from several threads.

    limit_bytes: at least 64 blocks. OSError if the folder cannot be made; a cache that cannot be written to later on is
    passed by."""

    def __init__(self, store: Store, folder: str | os.PathLike[str], limit_bytes: int) -> None:
        super().__init__(store)
        self._folder = Path(folder).absolute()
        self._limit = max(limit_bytes, 64 * BLOCK_BYTES)
        self._written = self._limit  # so that the first write looks
        self._lock = threading.Lock()
        self._folder.mkdir(parents=True, exist_ok=True)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_written": self._limit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        """See Store."""
        if stop is None or not version:
            return self._store.read(key, start, stop, version)
        return self.read_ranges(key, [(start, stop)], version)[0]

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """See Store. It takes two requests; the cache keeps the bytes of the second."""
        return end_by_size(self, key, count)

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        """See Store. What is not kept is asked for in whole blocks."""
        if not version:
            return self._store.read_ranges(key, ranges, version)
        name = hashlib.blake2b(f"{self.url}\0{key}\0{version}".encode(), digest_size=20).hexdigest()
        wanted = {
            number
            for start, stop in ranges
            for number in range(start // BLOCK_BYTES, -(-stop // BLOCK_BYTES))
            if start < stop
        }
        held = {number: block for number in wanted if (block := self._kept(name, number)) is not None}
        missing = sorted(wanted - held.keys())
        asked = [(number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES) for number in missing]
        read = self._store.read_ranges(key, asked, version) if asked else []
        for number, data in zip(missing, read, strict=True):
            held[number] = memoryview(data)
            self._keep(name, number, held[number])
        return [_joined(held, start, stop) for start, stop in ranges]

    def _place(self, name: str, number: int) -> Path:
        return self._folder / name[:2] / f"{name}-{number}"

    def _kept(self, name: str, number: int) -> memoryview | None:
        path = self._place(name, number)
        try:
            with path.open("rb") as file:
                data = memoryview(file.read(DIGEST_BYTES + BLOCK_BYTES + 1))
                last_read = os.fstat(file.fileno()).st_mtime
            block = data[DIGEST_BYTES:]
            if data[:DIGEST_BYTES] != _digest(block):
                return None
            if abs(time.time() - last_read) > READ_SECONDS:
                os.utime(path)
            return block
        except OSError:
            return None

    def _keep(self, name: str, number: int, block: memoryview) -> None:
        path = self._place(name, number)
        temporary = path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(exist_ok=True)
            try:
                with temporary.open("xb") as file:
                    file.write(_digest(block))
                    file.write(block)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        except OSError:
            return  # full, or not ours any more: the data come from the store
        with self._lock:
            self._written += len(block)
            is_time = self._written >= self._limit * LOOK_SHARE
            if is_time:
                self._written = 0
        if is_time:
            self._make_room()

    def _make_room(self) -> None:
        """Remove the blocks that were not read for longest; other processes may do the same at once."""
        found: list[tuple[float, int, str]] = []
        total, now = 0, time.time()
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = f"{folder}/{name}"
                with suppress(OSError):
                    status = os.stat(path)  # noqa: PTH116 - a Path costs more than the call
                    if name.startswith(_TEMPORARY):
                        if now - status.st_mtime > ABANDONED_SECONDS:
                            os.unlink(path)  # noqa: PTH108
                        continue
                    found.append((status.st_mtime, status.st_size, path))
                    total += status.st_size
        for _, size, path in sorted(found):
            if total <= self._limit * KEPT_SHARE:
                return
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108
                total -= size


def _digest(block: memoryview) -> bytes:
    return hashlib.blake2b(block, digest_size=DIGEST_BYTES).digest()


def _joined(held: dict[int, memoryview], start: int, stop: int) -> Bytes:
    """The bytes [start, stop) of blocks; fewer where the object ends before."""
    parts = []
    for number in range(start // BLOCK_BYTES, -(-stop // BLOCK_BYTES)) if start < stop else ():
        first = number * BLOCK_BYTES
        parts.append(held[number][max(start - first, 0) : stop - first])
    return parts[0] if len(parts) == 1 else b"".join(parts)
