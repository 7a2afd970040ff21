"""The place of temporary shards and unpacked blocks: a folder that all workers can access, or a store.

The text of a large compressed file is unpacked by one task into blocks, so that several tasks can encode it:

    <chunk>.<number>.block   the text of shard `number`
    <chunk>.<number>.json    a `BlockState` once the block is complete, then the record of the shard; the block is
                             deleted after that

A repeated task skips finished blocks.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert.errors import DataLost, naming
from convert.planning.plan import ShardId
from convert.shards import shard as shard_format
from convert.shards.shard import (
    DIGEST_DIGITS,
    ShardFile,
    ShardRecord,
    ShardSlice,
    digest_of,
    file_name,
)
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


class BlockState(NamedTuple):
    """A complete block of unpacked text that is not encoded yet.

    start: offset of its first byte in the unpacked text.
    size: bytes of text, which the file may continue after.
    first_line: number of its first line, from 0.
    is_last: whether the text of the compressed file ends with it.
    damage: the error that ended the text, or "".
    """

    start: int
    size: int
    first_line: int
    is_last: bool
    damage: str


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

    def read_slice(self, own: ShardSlice) -> Iterator[NDArray[np.uint8]]:
        """Yield the bytes of a slice, a block at a time, each valid until the next.

        DataLost if the file is missing or damaged. It is deleted, so that a later run encodes the shard again.
        """
        name, size, digests = own.file
        path = self.where(name)
        block = shard_format.BLOCK_BYTES
        first, stop = own.start // block * block, -(-own.stop // block) * block
        try:
            with naming(path), self.open(name, size) as file:
                file.expect(first, min(stop, size))
                for start in range(first, stop, block):
                    data = thread_buffer("shard block", min(block, size - start), np.uint8)
                    digest = digests[start // block * DIGEST_DIGITS :][:DIGEST_DIGITS]
                    if fill_at(file, start, data.data) < len(data) or digest_of(data.data) != digest:
                        self.store.delete([name])
                        raise DataLost(f"{path}: checksum mismatch. Run the same command again.")
                    yield data[max(own.start - start, 0) : own.stop - start]
        except StoreNotFound:
            raise DataLost(f"{path}: missing. Run the same command again.") from None

    def read_file(self, file: ShardFile) -> Iterator[NDArray[np.uint8]]:
        """Yield the bytes of a file like `read_slice`."""
        return self.read_slice(ShardSlice(file, 0, file.size))

    def is_intact(self, file: ShardFile, with_content: bool) -> bool:
        """Return whether a file exists with its size and, if asked, its content."""
        if self.size_of(file.name) != file.size:
            return False
        if with_content:
            try:
                for _ in self.read_file(file):
                    pass
            except DataLost:
                return False
        return True

    def block_state(self, shard: ShardId) -> BlockState | ShardRecord | None:
        """Return the state of a block: complete, encoded, or None."""
        try:
            state = json.loads(bytes(self.store.read(file_name(shard, "json"))))
        except StoreNotFound:
            return None
        return BlockState(*state) if isinstance(state, list) else ShardRecord.from_json(state)

    def put_block_state(self, shard: ShardId, state: BlockState | ShardRecord) -> None:
        """Change the state of a block."""
        value = state.as_json() if isinstance(state, ShardRecord) else state
        self.store.put(file_name(shard, "json"), json.dumps(value).encode())

    def is_unpacked(self, shard: ShardId) -> bool:
        """Return whether a block is complete or encoded."""
        return self.size_of(file_name(shard, "json")) is not None


def shards_at(place: str | Path, options: StorageOptions = NO_OPTIONS) -> ShardStore:
    """Return the shards at a path or URL."""
    return ShardStore(open_store(place, options), str(place), dict(options))
