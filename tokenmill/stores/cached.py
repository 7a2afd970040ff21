"""A cache of a store in a local folder, for data that is read again, as by a loader.

    <folder>/3f/3f9c...-17        block 17 of a version of an object: a digest of the bytes, then the bytes

Only reads with a version are cached. Processes may share the folder and may be killed: a block appears whole, and a
damaged one is read from the store again. The least recently read blocks are removed to stay within the limit.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tokenmill.stores.names import write_whole
from tokenmill.stores.store import Blocks, Bytes, Entry, Store, WrappedStore

BLOCK_BYTES = 256 << 10  # about one request of a loader
DIGEST_BYTES = 16
KEPT_SHARE = 7 / 8  # of the limit, after blocks were removed
CHECKED_SHARE = 1 / 32  # of the limit, written by a process between two checks of the folder's size
READ_SECONDS = 60.0  # resolution of the time at which a block was last read
ABANDONED_SECONDS = 3600.0  # older temporary files were left by killed processes
_TEMPORARY = ".tmp-"


class CachedStore(WrappedStore):
    """A store read through a cache. Can be pickled and used by several threads.

    limit_bytes: size of the cache, at least 64 blocks. Writes between two checks may exceed it.
    OSError: the folder cannot be created. A cache that cannot be written later is skipped.
    """

    def __init__(self, store: Store, folder: str | os.PathLike[str], limit_bytes: int) -> None:
        super().__init__(store)
        self._folder = Path(folder).absolute()
        self._limit = max(limit_bytes, 64 * BLOCK_BYTES)
        self._unchecked = self._limit  # bytes written since the last check; the first write checks
        self._folder.mkdir(parents=True, exist_ok=True)

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        if stop is None or not version:
            return self._store.read(key, start, stop, version)
        return self.read_ranges(key, [(start, stop)], version)[0]

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """Read the size first, so that the data can be cached."""
        return Store.read_end(self, key, count)

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        """Read missing data in whole blocks (see Store)."""
        if not version:
            return self._store.read_ranges(key, ranges, version)
        name = hashlib.blake2b(f"{self.url}\0{key}\0{version}".encode(), digest_size=20).hexdigest()
        numbers = sorted({number for start, stop in ranges for number in _blocks_of(start, stop)})
        kept = ((number, self._load(self._path(name, number))) for number in numbers)
        blocks = {number: block for number, block in kept if block is not None}
        missing = [number for number in numbers if number not in blocks]
        spans = [(number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES) for number in missing]
        read = self._store.read_ranges(key, spans, version) if spans else []
        for number, data in zip(missing, read, strict=True):
            blocks[number] = memoryview(data)
            self._keep(self._path(name, number), blocks[number])
        return [_joined(blocks, start, stop) for start, stop in ranges]

    def _path(self, name: str, number: int) -> Path:
        return self._folder / name[:2] / f"{name}-{number}"

    def _load(self, path: Path) -> memoryview | None:
        """Return a cached block and note when it was read. None if it is missing or damaged."""
        try:
            with path.open("rb") as file:
                data = memoryview(file.read(DIGEST_BYTES + BLOCK_BYTES + 1))
                last_read = os.fstat(file.fileno()).st_mtime
            if data[:DIGEST_BYTES] != _digest(data[DIGEST_BYTES:]):
                return None
            if abs(time.time() - last_read) > READ_SECONDS:
                os.utime(path)
            return data[DIGEST_BYTES:]
        except OSError:
            return None

    def _keep(self, path: Path, block: memoryview) -> None:
        temporary = path.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, (_digest(block), block), temporary, synced=False)
        except OSError:
            return  # the disk is full or read-only
        self._unchecked += len(block)
        if self._unchecked >= self._limit * CHECKED_SHARE:
            self._unchecked = 0
            self._remove_oldest()

    def _remove_oldest(self) -> None:
        """Remove the least recently read blocks, and temporary files of killed processes."""
        found: list[tuple[float, int, str]] = []
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = f"{folder}/{name}"
                with suppress(OSError):  # another process removed it
                    status = os.stat(path)  # noqa: PTH116 - a Path costs more than the call
                    if not name.startswith(_TEMPORARY):
                        found.append((status.st_mtime, status.st_size, path))
                    elif time.time() - status.st_mtime > ABANDONED_SECONDS:
                        os.unlink(path)  # noqa: PTH108
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self._limit * KEPT_SHARE:
                return
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108
                total -= size


def _blocks_of(start: int, stop: int) -> range:
    return range(start // BLOCK_BYTES, -(-stop // BLOCK_BYTES)) if start < stop else range(0)


def _digest(block: memoryview) -> bytes:
    return hashlib.blake2b(block, digest_size=DIGEST_BYTES).digest()


def _joined(blocks: dict[int, memoryview], start: int, stop: int) -> Bytes:
    """Return the bytes [start, stop) of blocks, up to the end of the object."""
    parts = [
        blocks[number][max(start - number * BLOCK_BYTES, 0) : stop - number * BLOCK_BYTES]
        for number in _blocks_of(start, stop)
    ]
    return parts[0] if len(parts) == 1 else b"".join(parts)
