"""The encoded Zarr chunks of an array on an object store, read as a few large ranges at a time.

The first access to a shard requests its index, size and version, which takes one or two requests. Ranges of
neighbouring Zarr chunks follow, one request each. Meanwhile another request asks whether the manifest is still the one
that was opened, and nothing is returned before the answer.

`expecting` announces the next reads. They are cut into pieces of up to PIECE_BYTES, and at most PIECES_AHEAD pieces are
requested at a time, so that memory is bounded. Invariant: the index and all Zarr chunks of a shard are of one
version of it.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import NamedTuple

import numpy as np

from flat_tokens.format import Int64
from flat_tokens.storage.elements import Positions
from flat_tokens.storage.files import check_length
from flat_tokens.storage.lru import Lru
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Payload, StorePath
from flat_tokens.storage.shards import ShardIndex, entry_of, parse_index
from flat_tokens.storage.zarr_metadata import ArrayMetadata
from tokenmill.stores.requests import start

PIECE_BYTES = 2**22  # decoded; the encoded bytes are fewer
PIECES_AHEAD = 16  # enough for 100 MB/s at 40 ms per request of 256 KiB
MAX_INDEX_BYTES = 2**25  # of indexes: 8,192 shards of the default size, at least the last one


class _Shard(NamedTuple):
    """checked: done once the manifest was seen unchanged after the version was known; fails if it was not."""

    version: str
    entries: ShardIndex
    checked: Future[None]


class StoreSource:
    """See file_source.FileSource."""

    maps_shards = False

    def __init__(self, array: ArrayMetadata, opened: OpenedManifest) -> None:
        self._array = array
        self._opened = opened
        self.piece_chunks = max(1, PIECE_BYTES // array.chunk_bytes)
        self._renew()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._shards = Lru[Future[_Shard]](max(1, MAX_INDEX_BYTES // self._array.index_bytes))
        self._thread = threading.local()

    def read(self, index: int) -> tuple[Payload, str]:
        """See FileSource."""
        if self._process != os.getpid():  # a forked child would wait for threads of its parent
            self._renew()
        plan = self._plan()
        payload = None if plan is None else plan.take(index)
        number = index // self._array.chunks_per_file
        if payload is None:
            payload = self.fetch(number, [index])[0]
        return payload, self._array.file_name(number)

    def is_mapped(self, _: int) -> bool:
        """See FileSource."""
        return False

    def _plan(self) -> _Plan | None:
        plan: _Plan | None = getattr(self._thread, "plan", None)
        return None if plan is None or plan.is_ended else plan

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Elements."""
        if self._plan() is not None and not at_once:
            return nullcontext()
        ends = np.minimum(stops, self._array.element_count)
        plan = _Plan(self, chunks_of(starts, ends, self._array.chunk_elements))
        if at_once:
            plan.begin()
        return self._using(plan)

    @contextmanager
    def _using(self, plan: _Plan) -> Iterator[None]:
        if self._plan() is not None:
            yield
            return
        self._thread.plan = plan
        try:
            yield
        finally:
            plan.end()

    def pieces(self, indexes: list[int]) -> Iterator[tuple[int, list[int]]]:
        """(shard, Zarr chunks in it), in the given order, of up to PIECE_BYTES."""
        for shard, group in itertools.groupby(indexes, lambda index: index // self._array.chunks_per_file):
            while piece := list(itertools.islice(group, self.piece_chunks)):
                yield shard, piece

    def fetch(self, number: int, indexes: list[int]) -> list[Payload]:
        """The encoded bytes of some Zarr chunks of a file. Raise DatasetError, AbsentFileError or StoreError."""
        place = self._array.file_path(number)
        assert isinstance(place, StorePath)
        if not self._array.sharded:
            limit = self._array.max_file_bytes
            with self._opened.reading(), place.reading():
                payload = place.store.read(place.key, 0, limit + 1)
                check_length(str(place), len(payload), limit)
            return [memoryview(payload)] * len(indexes)
        with self._opened.explaining():
            shard = self._shard(number, place)
            wanted = [entry_of(shard.entries, index, str(place)) for index in indexes]
            parts = place.parts([(offset, offset + length) for offset, length in wanted], shard.version)
            try:
                shard.checked.result()
            except BaseException:  # the next fetch opens the shard again
                self._shards.pop(number)
                raise
        return parts

    def _shard(self, number: int, place: StorePath) -> _Shard:
        """A shard, requested once by the first thread that needs it."""
        mine: Future[_Shard] = Future()
        known = self._shards.setdefault(number, mine)
        if known is mine:
            try:
                mine.set_result(self._open_shard(place))
            except BaseException as error:
                self._shards.pop(number)
                mine.set_exception(error)
        return known.result()

    def _open_shard(self, place: StorePath) -> _Shard:
        array = self._array
        with place.reading():
            if array.index_at_end:
                data, entry = place.store.read_end(place.key, array.index_bytes)
            else:
                entry = place.store.head(place.key)
                data = place.store.read(place.key, 0, array.index_bytes, entry.version)
        check_length(str(place), entry.size, array.max_file_bytes)
        index = parse_index(array, memoryview(data), entry.size, str(place))
        return _Shard(entry.version, index, start(self._opened.check))


class _Plan:
    """Zarr chunks that one thread reads soon, in rising order. Nothing is requested before the first is read, unless
    `begin` is called: earlier ones may be in the cache."""

    def __init__(self, source: StoreSource, indexes: Int64) -> None:
        self._source = source
        self._indexes = indexes
        self._pieces: Iterator[tuple[int, list[int]]] | None = None
        self._begun: deque[tuple[list[int], Future[list[Payload]]]] = deque()
        self._found: dict[int, Payload] = {}
        self.is_ended = False

    def begin(self, first: int = 0) -> None:
        """Send the first requests, from number `first` of the Zarr chunks on."""
        self._pieces = self._source.pieces(self._indexes[first:].tolist())
        self._request()

    def take(self, index: int) -> Payload | None:
        """Wait for the encoded bytes. Return None if they were not announced, are far ahead, or were taken before."""
        if self._pieces is None:
            self.begin(int(np.searchsorted(self._indexes, index)))
        if any(index in piece for piece, _ in self._begun):
            while index not in self._found:
                piece, future = self._begun.popleft()
                self._found.update(zip(piece, future.result(), strict=True))
            self._request()
        return self._found.pop(index, None)

    def end(self) -> None:
        """Drop the rest."""
        self.is_ended = True
        self._found.clear()
        self._begun.clear()

    def _request(self) -> None:
        for number, indexes in itertools.islice(self._pieces or (), PIECES_AHEAD - len(self._begun)):
            self._begun.append((indexes, start(partial(self._source.fetch, number, indexes))))


def chunks_of(starts: Positions, stops: Positions, chunk_elements: int) -> Int64:
    """The Zarr chunks of some ranges [starts[i], stops[i]), sorted and unique. [0, 5], [3, 9], 4 -> [0, 1, 2]."""
    firsts = np.asarray(starts, dtype=np.int64) // chunk_elements
    counts = np.maximum(-(-np.asarray(stops, dtype=np.int64) // chunk_elements) - firsts, 0)
    return np.unique(np.arange(counts.sum()) + np.repeat(firsts - np.cumsum(counts) + counts, counts))
