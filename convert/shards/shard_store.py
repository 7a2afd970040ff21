"""Where shards lie between encoding and merging: a folder that all workers see, or a store.

An attempt writes its files in a folder; `keep` puts them where they lie, whole, before its record goes to the driver.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from convert.errors import naming
from convert.shards.shard_files import is_shard_file
from stores import RandomFile, StorageOptions, Store, StoreNotFound, open_file, open_store

_BLOCK_BYTES = 8 << 20


class FolderShards(NamedTuple):
    """Shards in a folder. An attempt may write over files that nobody reads any more, see shard_files.py."""

    folder: Path

    @property
    def store(self) -> Store:
        """See StoreShards."""
        return open_store(self.folder)

    @contextmanager
    def attempt(self, temporary: Path) -> Iterator[Path]:
        """Where an attempt writes its files, as long as it lasts. temporary: a folder of the driver's machine."""
        yield self.folder

    def keep(self, folder: Path, names: Iterable[str]) -> None:
        """The files of an attempt are whole: they are where they belong."""

    def open(self, name: str, size: int) -> RandomFile:
        """A file for reading, of which `size` bytes are of interest; StoreNotFound."""
        try:
            return open_file(f"{self.folder}/{name}")
        except FileNotFoundError:
            raise StoreNotFound(f"{self.folder}/{name} is not there") from None

    def where(self, name: str) -> str:
        """What messages call a file."""
        return f"{self.folder}/{name}"

    def read(self, name: str) -> bytes:
        """All of a small file; StoreNotFound."""
        return bytes(self.store.read(name))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; one that is gone, or was taken to be written over, is passed over."""
        self.store.delete(names)


class StoreShards(NamedTuple):
    """Shards in a store, an object a file. url: of their folder, as `open` takes it."""

    store: Store
    url: str
    options: StorageOptions

    @contextmanager
    def attempt(self, temporary: Path) -> Iterator[Path]:
        """See FolderShards. On the driver's machine it lies in the driver's folder, which goes when the run ends,
        whatever became of its workers."""
        place = temporary if temporary.is_dir() else None
        with tempfile.TemporaryDirectory(
            prefix="tokenmill-shards-", dir=place, ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder)

    def keep(self, folder: Path, names: Iterable[str]) -> None:
        """Put the files of an attempt into the store; what is there under a name was put by another attempt at the
        same shard, and is replaced."""
        for name in names:
            path = folder / name
            with naming(path), path.open("rb") as file:
                self.store.put(name, iter(lambda: file.read(_BLOCK_BYTES), b""))

    def open(self, name: str, size: int) -> RandomFile:
        """See FolderShards."""
        return open_file(f"{self.url}/{name}", self.options, size=size)

    def where(self, name: str) -> str:
        """See FolderShards."""
        return f"{self.store.url}/{name}"

    def read(self, name: str) -> bytes:
        """See FolderShards."""
        return bytes(self.store.read(name))

    def delete(self, names: Iterable[str]) -> None:
        """See FolderShards."""
        self.store.delete(names)


ShardStore = FolderShards | StoreShards


def delete_others(shards: ShardStore, kept: Collection[str]) -> None:
    """Delete all files of shards but those of these names."""
    shards.delete(
        [entry.key for entry in shards.store.list() if entry.key not in kept and is_shard_file(entry.key)]
    )
