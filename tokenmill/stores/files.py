"""One file to read from at any offset, local or in an object store.

A local one is read as it is, a remote one ahead where it is read in order. `expect` says what will be read in order, so
that nothing behind it is fetched.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from tokenmill.stores import system
from tokenmill.stores.errors import changed
from tokenmill.stores.local import file_version, read_into
from tokenmill.stores.opening import open_store
from tokenmill.stores.store import NO_OPTIONS, Entry, StorageOptions
from tokenmill.stores.url import is_url, parse, shown_url, split_key


class RandomFile(Protocol):
    """A file open for reading; a context manager. One thread reads it at a time."""

    @property
    def size(self) -> int:
        """Its bytes when it was opened."""
        ...

    def version(self) -> str:
        """The version that is read, of a local file the present one; see `tokenmill.stores.store.Entry`."""
        ...

    def status(self) -> os.stat_result | None:
        """What the system says of a local file now; None of an object, whose every read is of its version."""
        ...

    def expect(self, start: int, stop: int) -> None:
        """Bytes [start, stop) will be read in order; nothing behind them is read ahead."""
        ...

    def readinto_at(self, offset: int, view: memoryview) -> int:
        """Put bytes from `offset` on into `view`; how many, 0 only at the end or for an empty view."""
        ...

    def close(self) -> None:
        """Let go of it; requests under way are not waited for."""
        ...

    def __enter__(self) -> RandomFile: ...

    def __exit__(self, *_: object) -> None: ...


def open_file(
    url_or_path: str, options: StorageOptions = NO_OPTIONS, version: str = "", size: int | None = None
) -> RandomFile:
    """The file at a URL or path. Of an object whose version and size are known nothing is asked before it is read.

    StoreNotFound if an object is not there; StoreChanged, now or when it is read, if it has another version than the
    one that is given. A local file that can't be opened is an OSError as the system has it.
    """
    if not is_url(url_or_path):
        return LocalFile(url_or_path, version)
    if parse(url_or_path).scheme == "file":
        return LocalFile(parse(url_or_path).path, version)
    from tokenmill.stores.remote_file import RemoteFile

    folder, key = split_key(url_or_path)
    store = open_store(folder, options)
    entry = store.head(key) if size is None else Entry(key, size, version)
    return RemoteFile(store, entry, shown_url(url_or_path), version)


def read_at(file: RandomFile, offset: int, size: int) -> bytearray:
    """Bytes [offset, offset + size) of a file, fewer at its end."""
    data = bytearray(size)
    with memoryview(data) as view:
        held = fill_at(file, offset, view)
    del data[held:]
    return data


def fill_at(file: RandomFile, offset: int, view: memoryview) -> int:
    """Put the file's bytes from `offset` on into `view`; how many, fewer only at its end."""
    held = 0
    while held < len(view) and (got := file.readinto_at(offset + held, view[held:])):
        held += got
    return held


class LocalFile:
    """A file of this machine; see RandomFile."""

    def __init__(self, path: str | Path, version: str = "") -> None:
        self._path = str(path)
        self._file = os.open(path, os.O_RDONLY | system.BINARY)
        status = os.fstat(self._file)
        self.size = status.st_size
        if version and version != file_version(status):
            self.close()
            raise changed(path)

    def __enter__(self) -> LocalFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def version(self) -> str:
        """See RandomFile."""
        return file_version(os.fstat(self._file))

    def status(self) -> os.stat_result:
        """See RandomFile."""
        return os.fstat(self._file)

    def expect(self, start: int, stop: int) -> None:
        """See RandomFile; the system reads ahead by itself."""

    def readinto_at(self, offset: int, view: memoryview) -> int:
        """See RandomFile."""
        return read_into(self._file, self._path, offset, view)

    def close(self) -> None:
        """See RandomFile."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
