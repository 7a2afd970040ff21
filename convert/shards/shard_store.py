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
from tokenmill.stores import (
    NO_OPTIONS,
    RandomFile,
    StorageOptions,
    Store,
    StoreNotFound,
    open_file,
    open_store,
)

_BLOCK_BYTES = 8 << 20


class ShardStore(NamedTuple):
    """Shards at `place`, a path or URL. In a folder an attempt writes where they lie, and may write over files that
    nobody reads any more (shard_files.py); in a store each file is an object."""

    store: Store
    place: str
    options: StorageOptions

    @contextmanager
    def attempt(self, temporary: Path) -> Iterator[Path]:
        """Where an attempt writes its files, as long as it lasts. temporary: a folder of the driver's machine, which
        goes when the run ends, whatever became of its workers."""
        if self.store.is_local:
            yield self.store.path
            return
        own = temporary if temporary.is_dir() else None
        with tempfile.TemporaryDirectory(
            prefix="tokenmill-shards-", dir=own, ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder)

    def keep(self, folder: Path, names: Iterable[str]) -> None:
        """The files of an attempt are whole. In a store, what is there under a name was put by another attempt at the
        same shard, and is replaced."""
        for name in names if not self.store.is_local else ():
            path = folder / name
            with naming(path), path.open("rb") as file:
                self.store.put(name, iter(lambda: file.read(_BLOCK_BYTES), b""))

    def open(self, name: str, size: int) -> RandomFile:
        """Open a file for reading; the caller reads its first `size` bytes. StoreNotFound."""
        try:
            return open_file(f"{self.place}/{name}", self.options, size=size)
        except FileNotFoundError:
            raise StoreNotFound(f"{self.where(name)}: missing") from None

    def where(self, name: str) -> str:
        """What messages call a file."""
        return f"{self.store.url}/{name}"

    def read(self, name: str) -> bytes:
        """All of a small file; StoreNotFound."""
        return bytes(self.store.read(name))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; one that is gone, or was taken to be written over, is passed over."""
        self.store.delete(names)

    def delete_others(self, kept: Collection[str]) -> None:
        """Delete all files of shards but those of these names."""
        there = (entry.key for entry in self.store.list())
        self.delete([name for name in there if name not in kept and is_shard_file(name)])


def shards_at(place: str | Path, options: StorageOptions = NO_OPTIONS) -> ShardStore:
    """Those at a path or URL."""
    return ShardStore(open_store(place, options), str(place), dict(options))
