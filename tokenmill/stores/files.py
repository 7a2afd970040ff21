"""Files open for reading at any offset, local or in a store."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from tokenmill.errors import naming
from tokenmill.stores.errors import changed


class RandomFile(ABC):
    """A file open for reading, used by one thread at a time. A context manager.

    size: bytes when the file was opened.
    """

    size: int

    @abstractmethod
    def readinto_at(self, offset: int, view: memoryview) -> int:
        """Read bytes at `offset` into `view` and return their number, 0 only at the end or for an empty view."""

    @abstractmethod
    def close(self) -> None:
        """Close the file without waiting for requests that are running."""

    def expect(self, start: int, stop: int) -> None:  # noqa: B027 - the system reads local files ahead
        """Prefetch [start, stop), which will be read in order. Nothing beyond is prefetched."""

    def status(self) -> os.stat_result | None:
        """Return the present status of a local file. None for objects: all reads have the same version."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_at(file: RandomFile, offset: int, size: int) -> bytearray:
    """Return bytes [offset, offset + size) of a file, up to its end."""
    data = bytearray(size)
    with memoryview(data) as view:
        filled = fill_at(file, offset, view)
    return data if filled == size else data[:filled]  # not resized: a debugger may hold a view of it


def fill_at(file: RandomFile, offset: int, view: memoryview) -> int:
    """Read bytes at `offset` until `view` is full or the file ends. Return their number."""
    filled = 0
    while filled < len(view) and (count := file.readinto_at(offset + filled, view[filled:])):
        filled += count
    return filled


def file_version(status: os.stat_result) -> str:
    """Return the version of a local file: its size and modification time."""
    return f"{status.st_size:x}-{status.st_mtime_ns:x}"


class LocalFile(RandomFile):
    """A local file. Raise StoreChanged if a version is given and differs from the file's."""

    def __init__(self, path: str | Path, version: str = "") -> None:
        self._path = str(path)
        self._file = os.open(path, os.O_RDONLY)
        self.size = self.status().st_size
        if version and version != file_version(self.status()):
            self.close()
            raise changed(path)

    def readinto_at(self, offset: int, view: memoryview) -> int:
        with naming(self._path):
            return os.preadv(self._file, [view], offset)

    def status(self) -> os.stat_result:
        return os.fstat(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class ArrowFile(io.RawIOBase):
    """A RandomFile as Arrow reads files, with `read` and `seek`. The caller closes `file`."""

    def __init__(self, file: RandomFile) -> None:
        self._file, self._offset = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._file.size}[whence]
        self._offset = base + offset
        return self._offset

    def tell(self) -> int:
        return self._offset

    def read(self, size: int | None = -1) -> bytes:
        """Return `size` bytes, or all to the end if `size` is None or negative."""
        rest = max(0, self._file.size - self._offset)
        data = read_at(self._file, self._offset, rest if size is None or size < 0 else min(size, rest))
        self._offset += len(data)
        return bytes(data)
