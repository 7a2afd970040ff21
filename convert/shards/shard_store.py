"""The place of temporary shards and unpacked blocks: a folder that all workers can access, or a store."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert.errors import DataLost, naming
from convert.shards import shard as shard_format
from convert.shards.shard import ShardFile
from tokenmill.inputs._core import xxh64
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.stores import (
    NO_OPTIONS,
    RandomFile,
    StorageOptions,
    Store,
    StoreNotFound,
    open_file,
    open_store,
)
from tokenmill.stores.files import fill_at
from tokenmill.stores.names import remove_empty_folders, rename

_PUT_BYTES = 8 << 20


class ShardStore(NamedTuple):
    """Files at `place`, a path or URL. A file in it is always complete."""

    store: Store
    place: str
    options: StorageOptions

    @contextmanager
    def folder(self, temporary: Path) -> Iterator[Path]:
        """Give a folder for the files of one task. temporary: a folder of this machine, used for a store."""
        parent = self.store.path if self.store.is_local else temporary if temporary.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="task-", dir=parent, ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def keep(self, folder: Path) -> None:
        """Move all files of a task's folder here. Existing files are replaced."""
        for path in sorted(folder.iterdir()):
            if self.store.is_local:
                rename(path, self.store.path / path.name)
                continue
            with naming(path), path.open("rb") as file:
                self.store.put(path.name, iter(lambda: file.read(_PUT_BYTES), b""))
            path.unlink()

    def size_of(self, name: str) -> int | None:
        """Return the size of a file, or None if it does not exist."""
        try:
            return self.store.head(name).size
        except StoreNotFound:
            return None

    def open(self, name: str, size: int | None = None) -> RandomFile:
        """Open a file for reading. size: its size, if known, which saves a request. Raise StoreNotFound."""
        try:
            return open_file(f"{self.place}/{name}", self.options, size=size)
        except FileNotFoundError:
            raise StoreNotFound(f"{self.where(name)}: missing") from None

    def where(self, name: str) -> str:
        """Return the path or URL of a file, for messages."""
        return f"{self.store.url}/{name}"

    def delete_others(self, kept: Collection[str], chunks: Container[int] | None) -> None:
        """Delete everything except these files; with `chunks`, only files of these text chunks, and no folders."""
        others = [entry.key for entry in self.store.list() if entry.key not in kept]
        if chunks is not None:
            first = [(name, name.partition(".")[0]) for name in others]
            others = [name for name, chunk in first if chunk.isdecimal() and int(chunk) in chunks]
        self.store.delete(others)
        if chunks is None and self.store.is_local:
            remove_empty_folders(self.store.path)

    def read(self, file: ShardFile, start: int = 0, stop: int | None = None) -> Iterator[NDArray[np.uint8]]:
        """Yield bytes [start, stop) of a file of a shard, a block at a time, each valid until the next.

        DataLost if the file is missing or damaged. It is deleted, so that a later run encodes the shard again.
        """
        name, size, digests = file
        stop = size if stop is None else stop
        path, block = self.where(name), shard_format.BLOCK_BYTES
        first, last = start // block, -(-stop // block)
        try:
            with naming(path), self.open(name, size) as opened:
                opened.expect(first * block, min(last * block, size))
                for number in range(first, last):
                    data = thread_buffer("shard block", min(block, size - number * block), np.uint8)
                    is_whole = fill_at(opened, number * block, data.data) == len(data)
                    if not is_whole or xxh64(data.data) != digests[number]:
                        self.store.delete([name])
                        raise DataLost(f"{path}: checksum mismatch. Run the same command again.")
                    yield data[max(start - number * block, 0) : stop - number * block]
        except StoreNotFound:
            raise DataLost(f"{path}: missing. Run the same command again.") from None

    def is_intact(self, file: ShardFile, with_content: bool) -> bool:
        """Return whether a file exists with its size and, if asked, its content."""
        if self.size_of(file.name) != file.size:
            return False
        try:
            for _ in self.read(file) if with_content else ():
                pass
        except DataLost:
            return False
        return True


def shards_at(place: str | Path, options: StorageOptions = NO_OPTIONS) -> ShardStore:
    """Return the shards at a path or URL."""
    return ShardStore(open_store(place, options), str(place), dict(options))
