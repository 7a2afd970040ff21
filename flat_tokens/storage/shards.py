"""Where the zarr chunks of an array lie within its shards: the shards' indexes, read once and kept, a bounded number.

Invariant: an offset that is handed out was checked against the index's checksum and the file's length when the index
was read. A zarr chunk that a shard lacks is an error, where zarr reads zeros. Safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import BinaryIO

from flat_tokens.errors import damaged, printable
from flat_tokens.storage.chunks import (
    ABSENT,
    NO_INDEX,
    ShardIndex,
    index_length,
    largest_file_bytes,
    parse_index,
)
from flat_tokens.storage.files import AbsentFileError, absent_chunk, check_length, open_regular, read_part
from flat_tokens.storage.zarr_metadata import StoredArray

KEPT_INDEXES = 64  # 4 KiB each by default
KEPT_INDEX_BYTES = 2**23  # of all of them, but the last one is kept in any case


def present_entry(entries: ShardIndex, index: int, inside: int, where: str) -> tuple[int, int]:
    """Offset and length in its shard, which is named `where`, of zarr chunk `index` of the array, which is the shard's
    zarr chunk `inside`; AbsentFileError if it has none."""
    offset, length = (int(value) for value in entries[inside])
    if offset == ABSENT:
        raise AbsentFileError(f"{printable(where)}: {absent_chunk(index)}")
    return offset, length


class Shards:
    """The shards of a stored array. Not to be taken into the child of a fork: make a new one."""

    def __init__(self, stored: StoredArray) -> None:
        self._stored = stored
        self._per_file = stored.shard_elements // stored.chunk_elements
        self._kept = max(1, min(KEPT_INDEXES, KEPT_INDEX_BYTES // index_length(stored)))
        self._lock = threading.Lock()
        self._indexes: OrderedDict[int, ShardIndex] = OrderedDict()

    def entry(self, index: int) -> tuple[int, int]:
        """Offset and length in its file of zarr chunk `index` of the array; AbsentFileError if it has none."""
        file_index, inside = divmod(index, self._per_file)
        return present_entry(self._index(file_index), index, inside, self._stored.file_name(file_index))

    def _index(self, file_index: int) -> ShardIndex:
        index = self._indexes.get(file_index)
        if index is None:
            stored, path = self._stored, self._stored.file_name(file_index)
            file, size = open_regular(path)
            with file:
                length = index_length(stored)
                check_length(path, size, largest_file_bytes(stored))
                if size < length:
                    raise damaged(path, NO_INDEX)
                file.seek(size - length if stored.index_at_end else 0)
                index = parse_index(stored, file.read(length), size, path)
            with self._lock:
                self._indexes[file_index] = index
                while len(self._indexes) > self._kept:
                    self._indexes.popitem(last=False)
        return index


class OpenShard:
    """The file of one shard after the other, for one thread: a shard is opened when another one is left. Whether the
    dataset was replaced is looked at when a shard is opened, or can't be read."""

    def __init__(self, shards: Shards, stored: StoredArray) -> None:
        self._shards = shards
        self._stored = stored
        self._number = -1
        self._file: BinaryIO | None = None
        self.is_ended = False

    def part(self, index: int) -> tuple[bytes | memoryview, str]:
        """The encoded bytes of zarr chunk `index` of the array, and the name of its file. AbsentFileError,
        DatasetError."""
        stored = self._stored
        number = index * stored.chunk_elements // stored.shard_elements
        path = stored.file_name(number)
        with stored.reading() if number == self._number else stored.opening():
            offset, length = self._shards.entry(index)
            if number != self._number or self._file is None:
                self._close()
                self._file, _ = open_regular(path)
                self._number = number
            return read_part(self._file, path, offset, length), path

    def end(self) -> None:
        """Nothing more is read."""
        self.is_ended = True
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._number = None, -1
