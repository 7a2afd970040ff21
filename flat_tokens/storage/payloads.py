"""The encoded Zarr chunks of an array, read from files. `StorePayloads` has the same methods."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flat_tokens.errors import damaged
from flat_tokens.storage.chunks import (
    NO_INDEX,
    Positions,
    ShardIndex,
    index_length,
    largest_file_bytes,
    parse_index,
    present_entry,
)
from flat_tokens.storage.files import ReadBuffer, check_length, open_descriptor, read_into, read_part
from flat_tokens.storage.mapped_stream import map_file
from flat_tokens.storage.opened_manifest import OpenedManifest, reading
from flat_tokens.storage.places import Payload
from flat_tokens.storage.zarr_metadata import StoredArray

_MAX_INDEXES = 64  # 4 KiB each by default
_MAX_INDEX_BYTES = 2**23


class _Shard:
    """An open shard. The last reference closes it, because another thread may still read."""

    def __init__(self, path: str) -> None:
        self.descriptor, self.size = open_descriptor(path)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if hasattr(self, "descriptor"):
            close(self.descriptor)


class FilePayloads:
    """Zarr chunks in local files. Shards of uncompressed ones are mapped, of others the last stays open within
    `expecting`. Safe to use from several threads, but not in the child of a fork."""

    def __init__(self, stored: StoredArray, opened: OpenedManifest | None) -> None:
        self._stored = stored
        self._opened = opened
        self._max_bytes = largest_file_bytes(stored)
        self._per_file = stored.shard_elements // stored.chunk_elements
        self._lock = threading.Lock()
        self._indexes: OrderedDict[int, ShardIndex] = OrderedDict()
        self._max_indexes = max(1, min(_MAX_INDEXES, _MAX_INDEX_BYTES // index_length(stored)))
        self._last: tuple[int, _Shard] | None = None  # kept within `expecting`
        self._expecting = 0
        self._is_mappable = stored.sharded and stored.codecs.is_uncompressed
        self._mapped: dict[int, tuple[ShardIndex, memoryview]] = {}

    def read(self, index: int, buffer: ReadBuffer) -> tuple[Payload, str]:
        """The encoded bytes of Zarr chunk `index`, perhaps in `buffer`, and the name of their file or object. Raise
        AbsentFileError if it does not exist."""
        number, inside = divmod(index, self._per_file)
        path = self._stored.file_name(number)
        if number in self._mapped:
            known, memory = self._mapped[number]
            offset, length = present_entry(known, index, inside, path)
            return memory[offset : offset + length], path
        with reading(self._opened):
            if not self._stored.sharded:
                return read_into(path, self._max_bytes, buffer), path
            last = self._last
            shard = last[1] if last is not None and last[0] == number else _Shard(path)
            if self._expecting:
                self._last = number, shard
            entries = self._indexes.get(number)
            if entries is None:
                entries = self._read_index(number, shard, path)
            data = map_file(shard.descriptor, shard.size, path) if self._is_mappable else None
            if data is not None:
                if self._opened is not None:
                    self._opened.check()  # before others see the shard
                self._mapped[number] = entries, data
                return self.read(index, buffer)
            return read_part(shard.descriptor, path, *present_entry(entries, index, inside, path)), path

    def is_mapped(self, index: int) -> bool:
        """Return whether the bytes of Zarr chunk `index`, which was read, are mapped and stay valid."""
        return index // self._per_file in self._mapped

    @contextmanager
    def expecting(self, starts: Positions, stops: Positions, at_once: bool = False) -> Iterator[None]:
        """A context in which a thread reads the Zarr chunks of the elements [starts[i], stops[i]), about in this order.

        at_once: send the first requests before the context is entered. An inner context has no effect."""
        with self._lock:
            self._expecting += 1
        try:
            with reading(self._opened):
                yield
        finally:
            with self._lock:
                self._expecting -= 1
                if not self._expecting:
                    self._last = None

    def _read_index(self, number: int, shard: _Shard, path: str) -> ShardIndex:
        stored = self._stored
        size, length = shard.size, index_length(stored)
        check_length(path, size, self._max_bytes)
        if size < length:
            raise damaged(path, NO_INDEX)
        data = read_part(shard.descriptor, path, size - length if stored.index_at_end else 0, length)
        entries = parse_index(stored, data, size, path)
        with self._lock:
            self._indexes[number] = entries
            while len(self._indexes) > self._max_indexes:
                self._indexes.popitem(last=False)
        return entries
