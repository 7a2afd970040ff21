"""The encoded Zarr chunks of an array, read from files. `StoreSource` has the same methods."""

from __future__ import annotations

from flat_tokens.storage.files import RegularFile, check_length
from flat_tokens.storage.lru import Lru
from flat_tokens.storage.mapped_stream import map_file
from flat_tokens.storage.places import Payload
from flat_tokens.storage.shards import ShardIndex, entry_of, read_index
from flat_tokens.storage.zarr_metadata import ArrayMetadata

_MAX_INDEXES = 64  # 4 KiB each by default
_MAX_INDEX_BYTES = 2**23


class FileSource:
    """Zarr chunks in local files. Shards of uncompressed ones are mapped; of others the last stays open until `close`.
    Safe to use from several threads."""

    def __init__(self, array: ArrayMetadata) -> None:
        self._array = array
        self._indexes = Lru[ShardIndex](max(1, min(_MAX_INDEXES, _MAX_INDEX_BYTES // array.index_bytes)))
        self._last: tuple[int, RegularFile] | None = None
        self.maps_shards = array.sharded and array.codecs.is_uncompressed
        self._mapped: dict[int, tuple[ShardIndex, memoryview]] = {}

    def read(self, index: int) -> tuple[Payload, str]:
        """The encoded bytes of Zarr chunk `index`, and the name of their file. Raise AbsentFileError if it does not
        exist."""
        number = index // self._array.chunks_per_file
        path = self._array.file_name(number)
        if not self._array.sharded:
            with RegularFile(path) as file:
                check_length(path, file.size, self._array.max_file_bytes)
                return file.part(0, file.size), path
        if number not in self._mapped:
            last = self._last
            shard = last[1] if last is not None and last[0] == number else RegularFile(path)
            self._last = number, shard
            entries = self._indexes.get(number)
            if entries is None:
                entries = read_index(self._array, shard.part, shard.size, path)
                self._indexes.put(number, entries)
            memory = map_file(shard, path) if self.maps_shards else None
            if memory is None:
                return shard.part(*entry_of(entries, index, path)), path
            self._mapped[number] = entries, memory
        entries, memory = self._mapped[number]
        offset, length = entry_of(entries, index, path)
        return memory[offset : offset + length], path

    def is_mapped(self, index: int) -> bool:
        """Whether the bytes of Zarr chunk `index`, which was read, are mapped and take no memory."""
        return index // self._array.chunks_per_file in self._mapped

    def close(self) -> None:
        """Close the last shard, unless another thread still reads it."""
        self._last = None
