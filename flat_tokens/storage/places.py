"""Where a dataset and its files lie: in a folder, or on an object store.

A `Path` is a folder or file of this machine, a `StorePath` one of a store; `open_file` opens either, and what reads
metadata, the manifest or files to be verified asks for no more. Zarr chunks are read at random by
flat_tokens/storage/payloads.py and store_payloads.py. Invariant: what is read of one opened file is of one version of
it; an object that was replaced meanwhile is a DatasetError.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from flat_tokens import arguments
from flat_tokens.errors import DatasetError, damaged, printable
from flat_tokens.storage import files
from flat_tokens.storage.files import AbsentFileError, ReadBuffer, absence, check_length, ends_early
from tokenmill.stores import Store, is_url, open_store
from tokenmill.stores.errors import StoreChanged, StoreNotFound

BLOCK_BYTES = 2**24  # of an object that is read from one end to the other

Payload = bytes | memoryview


@dataclass(frozen=True)
class StorePath:
    """An object, or all whose keys begin so; str() is its URL. Picklable, as its store is."""

    store: Store
    key: str = ""

    def __truediv__(self, name: str) -> StorePath:
        return StorePath(self.store, f"{self.key}/{name}" if self.key else name)

    def __str__(self) -> str:
        url = self.store.url.rstrip("/")
        return f"{url}/{self.key}" if self.key else url

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return str(self).rpartition("/")[2]

    def parts(self, ranges: Sequence[tuple[int, int]], version: str) -> list[Payload]:
        """The bytes [start, stop) of each range of a version of the object. DatasetError, StoreError."""
        with self.reading():
            found: list[Any] = self.store.read_ranges(self.key, ranges, version)
        for data, (start, stop) in zip(found, ranges, strict=True):
            if len(data) != stop - start:
                raise damaged(self, ends_early(stop - start - len(data)))
        return [memoryview(data) for data in found]

    def begin(self, count: int) -> tuple[bytes, str]:
        """The first `count` bytes of the object, all if it has fewer, and its version. DatasetError, StoreError."""
        with self.reading():
            data, entry = self.store.read_begin(self.key, count)
        return bytes(data), entry.version

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What the store says of the dataset, rather than of the way to it, becomes a DatasetError."""
        try:
            yield
        except StoreNotFound as error:
            raise AbsentFileError(f"{printable(str(self))}: {absence(self.key)}") from error
        except StoreChanged as error:
            raise DatasetError(str(error)) from None


Place = Path | StorePath
Where = str | os.PathLike[str] | Store | StorePath  # what a caller names a dataset by; URLs, too


class File(Protocol):
    """An opened file or object of `size` bytes; a context, which closes it."""

    size: int

    def part(self, offset: int, length: int) -> Payload:
        """The bytes [offset, offset + length); DatasetError if it ends before."""

    def parts(self, ranges: Sequence[tuple[int, int]]) -> list[Payload]:
        """The bytes [start, stop) of each range, on a store by as few requests as make sense."""

    def whole(self, buffer: ReadBuffer, /) -> Payload:
        """All bytes, perhaps in the memory of `buffer`."""

    def blocks(self, buffer: ReadBuffer, /) -> Iterator[Payload]:
        """All bytes, a block at a time, perhaps each in the place of the one before."""

    def reader(self) -> io.BufferedReader[Any]:
        """Its lines, for instance."""

    def __enter__(self) -> File: ...
    def __exit__(self, *_: object) -> None: ...


class StoreFile:
    """An object, of the version that it has now. One request, and one for each part."""

    def __init__(self, place: StorePath) -> None:
        self._place = place
        with place.reading():
            _, self.size, self._version = place.store.head(place.key)

    def part(self, offset: int, length: int) -> Payload:
        """See File.part."""
        return self.parts([(offset, offset + length)])[0]

    def parts(self, ranges: Sequence[tuple[int, int]]) -> list[Payload]:
        """See File.parts."""
        return self._place.parts(ranges, self._version)

    def whole(self, _: ReadBuffer) -> Payload:
        """See File.whole."""
        return self.part(0, self.size)

    def blocks(self, _: ReadBuffer) -> Iterator[Payload]:
        """See File.blocks."""
        for offset in range(0, self.size, BLOCK_BYTES):
            yield self.part(offset, min(BLOCK_BYTES, self.size - offset))

    def reader(self) -> io.BufferedReader[Any]:
        """See File.reader."""
        return io.BufferedReader(_Sequential(self), max(1, min(BLOCK_BYTES, self.size)))

    def __enter__(self) -> StoreFile:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _Sequential(io.RawIOBase):
    """A file's bytes from one end to the other."""

    def __init__(self, file: StoreFile) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        count = min(len(into), self._file.size - self._at)
        if count:
            into[:count] = self._file.part(self._at, count)
            self._at += count
        return count


def open_file(place: Place) -> File:
    """The file or object; DatasetError, an AbsentFileError if it is not there."""
    return StoreFile(place) if isinstance(place, StorePath) else files.RegularFile(place)


def read_whole(place: Place, limit_bytes: int, follow_link: bool = False) -> bytes:
    """See files.read_whole."""
    if isinstance(place, Path):
        return files.read_whole(place, limit_bytes, follow_link)
    with open_file(place) as file:
        check_length(str(place), file.size, limit_bytes)
        return bytes(file.whole(ReadBuffer()))


def is_there(place: Place) -> bool:
    """Whether there is a file or object, be it a link or a pipe."""
    if isinstance(place, Path):
        return os.path.lexists(place)
    try:
        place.store.read(
            place.key, 0, 1
        )  # where there is none, an answer to HEAD would not say what is missing
    except StoreNotFound:
        return False
    return True


def refuse_link(place: Place) -> None:
    """See files.refuse_link; stores have no links."""
    if isinstance(place, Path):
        files.refuse_link(place)


def walk(root: Place) -> Iterator[tuple[str, str, int]]:
    """(path relative to root, "file", "link" or "special file", bytes) of everything below, links not followed."""
    if isinstance(root, StorePath):
        cut = len(root.key) + 1 if root.key else 0
        for key, size, _ in root.store.list(root.key):
            yield key[cut:], "file", size
        return
    todo = [""]
    while todo:
        folder = todo.pop()
        with os.scandir(root / folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                relative = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    todo.append(f"{relative}/")
                elif entry.is_file(follow_symlinks=False):
                    yield relative, "file", entry.stat(follow_symlinks=False).st_size
                else:
                    yield relative, "link" if entry.is_symlink() else "special file", 0


def name_of(place: Place) -> str:
    """The last part of a path or URL."""
    return place.name if isinstance(place, StorePath) else place.absolute().name


def locate(name: str, value: Any, options: Mapping[str, str] | None = None) -> Place:
    """Where somebody's dataset is. value: a path, a URL, or a Store. options: of the store (stores.open_store).
    ArgumentError names the argument."""
    if isinstance(value, StorePath):
        return value
    if isinstance(value, str) and is_url(value):
        value = open_store(value, options or {})
    if hasattr(value, "read_ranges"):
        return Path(value.path) if value.is_local else StorePath(value)
    return arguments.path(name, value)
