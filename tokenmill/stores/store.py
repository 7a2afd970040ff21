"""The interface of stores: a container of objects with keys, in a local folder or an object store.

Keys are relative paths with slashes and never leave the container. A put makes the whole object visible at once, or
nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from tokenmill.stores.errors import AlreadyThere, StoreError, StoreNotFound, read_only

Bytes = bytes | bytearray | memoryview
Blocks = list[Bytes]
StorageOptions = Mapping[str, str]
NO_OPTIONS: StorageOptions = MappingProxyType({})
"""Settings by name (--storage-option NAME=VALUE), which override environment variables. Local folders have none."""


class Entry(NamedTuple):
    """An object of a store.

    size: bytes.
    version: opaque text that changes when the object is replaced: its entity tag, or its size and modification time;
        "" if unknown.
    """

    key: str
    size: int
    version: str = ""


class Store(ABC):
    """A container of objects. Pickled as URL and options; each process opens its own connections.

    Methods raise errors of `tokenmill.stores.errors`, and OSError with the path for a local folder.

    url: the container as shown in messages, without credentials; the path of a local folder.
    is_local: whether the container is a local folder, which has a `path`.
    """

    url: str
    is_local: ClassVar[bool] = False

    @property
    def path(self) -> Path:
        """The local folder. Raises StoreError for other stores."""
        raise StoreError(f"{self.url}: not a local folder")

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Yield the objects in the folder `prefix` ("": all) and below, sorted by the UTF-8 bytes of their keys.

        Hidden names are included. A missing folder is empty.
        """

    @abstractmethod
    def head(self, key: str) -> Entry:
        """Return size and version of an object. Raise StoreNotFound if it does not exist."""

    @abstractmethod
    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        """Return bytes [start, stop) of an object in one request, up to its end if `stop` is None or larger.

        Raise StoreChanged if `version` is given and differs from the object's.
        """

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        """Return the bytes of each [start, stop). Near ranges share a request, and requests run in parallel."""
        from tokenmill.stores.requests import read_joined  # slow to import

        return read_joined(partial(self.read, key, version=version), ranges)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """Return the first `count` bytes of an object, or all it has, and its entry."""
        entry = self.head(key)
        return self.read(key, 0, min(count, entry.size), entry.version), entry

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """Return the last `count` bytes of an object, or all it has, and its entry."""
        entry = self.head(key)
        return self.read(key, max(entry.size - count, 0), entry.size, entry.version), entry

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """Write an object, whole or not at all, and return its new entry.

        data: bytes, or blocks that are uploaded in parts, so that not all are held in memory.
        if_absent: raise AlreadyThere if the object exists. Only one of several concurrent writers succeeds.
        """
        raise read_only(self.url)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects. Missing ones are ignored."""
        raise read_only(self.url)


class WrappedStore(Store):
    """`store` and, for the keys that `holder` says, other stores. `list` and `delete` use `store` only."""

    def __init__(self, store: Store) -> None:
        self._store, self.url = store, store.url

    def holder(self, key: str) -> Store:
        """Return the store that holds a key."""
        return self._store

    def list(self, prefix: str = "") -> Iterator[Entry]:
        return self._store.list(prefix)

    def head(self, key: str) -> Entry:
        return self.holder(key).head(key)

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        return self.holder(key).read(key, start, stop, version)

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        return self.holder(key).read_ranges(key, ranges, version)

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        return self.holder(key).read_begin(key, count)

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        return self.holder(key).read_end(key, count)

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        return self.holder(key).put(key, data, if_absent)

    def delete(self, keys: Iterable[str]) -> None:
        self._store.delete(keys)


def put_own(store: Store, key: str, data: bytes) -> Entry:
    """Create an object with bytes that no other run writes. Raise AlreadyThere if it exists with other bytes.

    If it exists with the same bytes, a proxy or client on the way sent this request twice.
    """
    try:
        return store.put(key, data, if_absent=True)
    except AlreadyThere:
        with suppress(StoreNotFound):
            if bytes(store.read(key)) == data:
                return store.head(key)
        raise


def checked_key(store: str, key: str) -> str:
    """Return the key. Raise StoreError if it is not a relative path within its container."""
    parts = key.split("/")
    if "" in parts or "." in parts or ".." in parts or "\0" in key:
        raise StoreError(
            f"{store}: key must be a relative path without empty parts, '.' and '..' (got {key!r})"
        )
    return key


def as_blocks(data: Bytes | Iterable[Bytes]) -> Iterator[memoryview]:
    """Yield the blocks of data to write as views of single bytes, without empty ones."""
    for block in (data,) if isinstance(data, bytes | bytearray | memoryview) else data:
        view = memoryview(block)
        if view.nbytes:
            yield view if view.format == "B" and view.ndim == 1 else view.cast("B")
