"""Where bytes are kept: a container of objects, each with a key, by one interface for folders and object stores.

A key is a path relative to the container, with slashes, never outside of it. An object is whole or not there: a put
becomes visible at once or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from tokenmill.stores.errors import AlreadyThere, StoreError, StoreNotFound

Bytes = bytes | bytearray | memoryview
Blocks = list[Bytes]
StorageOptions = Mapping[str, str]
NO_OPTIONS: StorageOptions = MappingProxyType({})
"""Settings by name (--storage-option NAME=VALUE), above those of environment variables; a local folder has none."""


class Entry(NamedTuple):
    """An object. size: in bytes. version: an opaque text that differs once the object was written anew: the store's
    entity tag, or size and times where it has none; "" where nothing is known."""

    key: str
    size: int
    version: str = ""


class Store(Protocol):
    """A container of objects. It is pickled by its URL and options and connects by itself in another process.

    Errors are those of `tokenmill.stores.errors`, and OSError (with the path) in a local folder.
    """

    @property
    def url(self) -> str:
        """The container as messages name it, without credentials; the path of a local folder."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine, which then has `path`."""
        ...

    @property
    def path(self) -> Path:
        """The local folder; StoreError for any other store."""
        ...

    @property
    def excludes(self) -> bool:
        """Whether `put` with if_absent can't be won twice; False once the store was seen to ignore the condition."""
        ...

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """The objects below the folder `prefix`, "" for all, in the order of the UTF-8 bytes of their keys; none if
        there is no such folder. Names that begin with a dot are there too."""
        ...

    def head(self, key: str) -> Entry:
        """Size and version of an object; StoreNotFound if there is none."""
        ...

    def read(self, key: str, start: int = 0, stop: int | None = None, version: str = "") -> Bytes:
        """Bytes [start, stop) of an object in one request; fewer where it ends before, all from `start` on without
        `stop`. StoreChanged if a version is given and the object has another one."""
        ...

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]], version: str = "") -> Blocks:
        """Each [start, stop) of an object, in the order of `ranges`: neighbours in one request, several at once."""
        ...

    def read_begin(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """The first `count` bytes of an object, all if it has no more, and size and version of what they are of: in one
        request where that is not empty. StoreNotFound if there is none."""
        ...

    def read_end(self, key: str, count: int) -> tuple[Bytes, Entry]:
        """The last `count` bytes of an object, all if it has no more, and size and version of what they are of: in one
        request where the store knows such ranges, else in two. StoreNotFound if there is none."""
        ...

    def put(self, key: str, data: Bytes | Iterable[Bytes], if_absent: bool = False) -> Entry:
        """Make `data` the object, whole or not at all, and return it with its new version.

        data: bytes, or an iterable of them that is put in parts without holding all. if_absent: AlreadyThere if the
        object exists, and of several writers one alone has written it.
        """
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are no error."""
        ...


def put_own(store: Store, key: str, data: bytes) -> Entry:
    """Put an object that no other run puts with these bytes; AlreadyThere if another one is there.

    The same bytes that are there already were put by this call: something on the way sent its request twice.
    """
    try:
        return store.put(key, data, if_absent=True)
    except AlreadyThere:
        with suppress(StoreNotFound):
            if bytes(store.read(key)) == data:
                return store.head(key)
        raise


def begin_by_size(store: Store, key: str, count: int) -> tuple[Bytes, Entry]:
    """Store.read_begin by two requests."""
    entry = store.head(key)
    return store.read(key, 0, min(count, entry.size), entry.version), entry


def end_by_size(store: Store, key: str, count: int) -> tuple[Bytes, Entry]:
    """Store.read_end for a store without ranges that count from the end."""
    entry = store.head(key)
    return store.read(key, max(entry.size - count, 0), entry.size, entry.version), entry


def checked_key(store: str, key: str) -> str:
    """The key, or StoreError if it is no relative path within its container."""
    parts = key.split("/")
    if "" in parts or "." in parts or ".." in parts or "\0" in key:
        raise StoreError(
            f"{store}: key must be a relative path without empty parts, '.' and '..' (got {key!r})"
        )
    return key


def as_blocks(data: Bytes | Iterable[Bytes]) -> Iterator[memoryview]:
    """The bytes of what is put, block by block, as views of single bytes; empty blocks are left out."""
    blocks = (data,) if isinstance(data, bytes | bytearray | memoryview) else data
    for block in blocks:
        view = memoryview(block)
        if view.nbytes:
            yield view if view.format == "B" and view.ndim == 1 else view.cast("B")
