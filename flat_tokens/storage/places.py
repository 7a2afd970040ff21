"""Locations of datasets and their files: in a folder, or on an object store.

A `Path` is a local folder or file, a `StorePath` one on a store. `open_file` opens either. Invariant: all reads of an
opened file see one version of it. An object that was replaced since is a DatasetError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flat_tokens import arguments
from flat_tokens.errors import DatasetError, damaged, printable
from flat_tokens.storage.files import AbsentFileError, RegularFile, absence, check_length, ends_early
from tokenmill.stores import Store, is_url, open_store
from tokenmill.stores.errors import StoreChanged, StoreNotFound

BLOCK_BYTES = 2**24  # of an object that is read from one end to the other

Payload = bytes | memoryview


@dataclass(frozen=True)
class StorePath:
    """An object, or the prefix of several; str() is its URL. Picklable."""

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
        """The bytes [start, stop) of each range of a version of the object. Raise DatasetError or StoreError."""
        with self.reading():
            found: list[Any] = self.store.read_ranges(self.key, ranges, version)
        for data, (start, stop) in zip(found, ranges, strict=True):
            if len(data) != stop - start:
                raise damaged(self, ends_early(stop - start - len(data)))
        return [memoryview(data) for data in found]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context that turns errors of missing and changed objects into DatasetError."""
        try:
            yield
        except StoreNotFound as error:
            raise AbsentFileError(f"{printable(str(self))}: {absence(self.key)}") from error
        except StoreChanged as error:
            raise DatasetError(str(error)) from None


Place = Path | StorePath
Where = str | os.PathLike[str] | Store | StorePath  # accepted for a dataset; a str may be a URL


class StoreFile:
    """The current version of an object. One request, and one for each part. It has the methods of RegularFile."""

    def __init__(self, place: StorePath) -> None:
        self._place = place
        with place.reading():
            _, self.size, self._version = place.store.head(place.key)

    def part(self, offset: int, length: int) -> Payload:
        return self._place.parts([(offset, offset + length)], self._version)[0]

    def blocks(self) -> Iterator[Payload]:
        for offset in range(0, self.size, BLOCK_BYTES):
            yield self.part(offset, min(BLOCK_BYTES, self.size - offset))

    def __enter__(self) -> StoreFile:
        return self

    def __exit__(self, *_: object) -> None:
        pass


File = RegularFile | StoreFile


def open_file(place: Place, follow_link: bool = False) -> File:
    """Open a file or object. Raise DatasetError, and AbsentFileError if it does not exist."""
    return StoreFile(place) if isinstance(place, StorePath) else RegularFile(place, follow_link)


def read_whole(place: Place, limit_bytes: int, follow_link: bool = False) -> bytes:
    """The bytes of a file or object of at most limit_bytes. See RegularFile."""
    with open_file(place, follow_link) as file:
        check_length(str(place), file.size, limit_bytes)
        return bytes(file.part(0, file.size))


def is_there(place: Place) -> bool:
    """Whether a file or object exists; links and pipes count."""
    if isinstance(place, Path):
        return os.path.lexists(place)
    try:
        place.store.read(place.key, 0, 1)  # the error of a HEAD request would not name a missing bucket
    except StoreNotFound:
        return False
    return True


def walk(root: Place) -> Iterator[tuple[str, str, int]]:
    """(path relative to root, "file", "link" or "special file", bytes) of everything below. Links are not followed."""
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
    """The location of a dataset. value: a path, URL or Store. options: of the store. Raise ArgumentError, which names
    the argument."""
    if isinstance(value, StorePath):
        return value
    if isinstance(value, str) and is_url(value):
        value = open_store(value, options or {})
    if hasattr(value, "read_ranges"):
        return Path(value.path) if value.is_local else StorePath(value)
    return arguments.path(name, value)
