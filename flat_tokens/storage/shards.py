"""Where the zarr chunks of an array lie within its shards: the shards' indexes, read once and kept, a bounded number.

Invariant: an offset that is handed out was checked against the index's checksum and the file's length when the index
was read. A zarr chunk that a shard lacks is an error, where zarr reads zeros. Safe to use from several threads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from flat_tokens.errors import DatasetError, printable
from flat_tokens.storage.chunks import (
    ABSENT,
    ShardIndex,
    index_length,
    largest_file_bytes,
    parse_index,
)
from flat_tokens.storage.files import AbsentFileError, check_length, open_regular, read_part
from flat_tokens.storage.zarr_metadata import StoredArray

KEPT_INDEXES = 64  # 4 KiB each by default
KEPT_INDEX_BYTES = 2**23  # of all of them, but the last one is kept in any case


def present_entry(entries: ShardIndex, index: int, inside: int, where: str) -> tuple[int, int]:
    """Offset and length in its shard, which is named `where`, of zarr chunk `index` of the array, which is the shard's
    zarr chunk `inside`; AbsentFileError if it has none."""
    offset, length = (int(value) for value in entries[inside])
    if offset == ABSENT:
        raise AbsentFileError(
            f"{printable(where)}: zarr chunk {index} is not in the shard; zarr would read zeros. "
            "Restore it or convert again"
        )
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

    def part(self, index: int) -> bytes | memoryview:
        """The encoded bytes of zarr chunk `index` of the array."""
        offset, length = self.entry(index)
        path = self._stored.file_name(index // self._per_file)
        file, _ = open_regular(path)
        with file:
            return read_part(file, path, offset, length)

    def _index(self, file_index: int) -> ShardIndex:
        index = self._indexes.get(file_index)
        if index is None:
            stored, path = self._stored, self._stored.file_name(file_index)
            file, size = open_regular(path)
            with file:
                length = index_length(stored)
                check_length(path, size, largest_file_bytes(stored))
                if size < length:
                    raise DatasetError(
                        f"{printable(path)}: too short for the index of a shard; restore it or convert again"
                    )
                file.seek(size - length if stored.index_at_end else 0)
                index = parse_index(stored, file.read(length), size, path)
            with self._lock:
                self._indexes[file_index] = index
                while len(self._indexes) > self._kept:
                    self._indexes.popitem(last=False)
        return index
