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
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import NamedTuple

import numpy as np

from flat_tokens.format import Int64
from flat_tokens.storage.chunks import (
    Positions,
    ShardIndex,
    chunks_of,
    index_length,
    largest_file_bytes,
    parse_index,
    present_entry,
)
from flat_tokens.storage.files import ReadBuffer, check_length
from flat_tokens.storage.opened_manifest import OpenedManifest, reading
from flat_tokens.storage.places import Payload, StorePath
from flat_tokens.storage.zarr_metadata import StoredArray
from tokenmill.stores.requests import start

PIECE_BYTES = 2**22  # decoded; the encoded bytes are fewer
PIECES_AHEAD = 16  # enough for 100 MB/s at 40 ms per request of 256 KiB
_NOTHING = nullcontext()
MAX_INDEX_BYTES = 2**25  # of indexes: 8,192 shards of the default size, at least the last one


class _Shard(NamedTuple):
    """checked: done once the manifest was seen unchanged after the version was known; fails if it was not."""

    version: str
    entries: ShardIndex
    checked: Future[None]


class StorePayloads:
    """See payloads.FilePayloads."""

    def __init__(self, stored: StoredArray, place: StorePath, opened: OpenedManifest | None) -> None:
        self._stored = stored
        self._place = place
        self._opened = opened
        self._per_file = stored.shard_elements // stored.chunk_elements
        self.piece_chunks = max(1, PIECE_BYTES // stored.chunk_bytes)
        self._max_shards = max(1, MAX_INDEX_BYTES // index_length(stored))
        self._lock = threading.Lock()
        self._shards: OrderedDict[int, Future[_Shard]] = OrderedDict()
        self._thread = threading.local()

    def read(self, index: int, _: ReadBuffer) -> tuple[Payload, str]:
        """See FilePayloads."""
        plan: _Plan | None = getattr(self._thread, "plan", None)
        payload = None if plan is None or plan.is_ended else plan.take(index)
        if payload is None:
            payload = self.fetch(index // self._per_file, [index])[0]
        return payload, str(self._object(index // self._per_file))

    def is_mapped(self, _: int) -> bool:
        """See FilePayloads."""
        return False

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See FilePayloads."""
        if self._is_planned() and not at_once:
            return _NOTHING
        ends = np.minimum(stops, self._stored.element_count)
        plan = _Plan(self, chunks_of(starts, ends, self._stored.chunk_elements))
        if at_once:
            plan.begin()
        return self._using(plan)

    def _is_planned(self) -> bool:
        outer: _Plan | None = getattr(self._thread, "plan", None)
        return outer is not None and not outer.is_ended

    @contextmanager
    def _using(self, plan: _Plan) -> Iterator[None]:
        if self._is_planned():
            yield
            return
        self._thread.plan = plan
        try:
            yield
        finally:
            plan.end()

    def pieces(self, indexes: list[int]) -> Iterator[tuple[int, list[int]]]:
        """(shard, Zarr chunks in it), in the given order, of up to PIECE_BYTES."""
        for shard, group in itertools.groupby(indexes, lambda index: index // self._per_file):
            while piece := list(itertools.islice(group, self.piece_chunks)):
                yield shard, piece

    def fetch(self, shard: int, indexes: list[int]) -> list[Payload]:
        """The encoded bytes of some Zarr chunks of a shard. Raise DatasetError, AbsentFileError or StoreError."""
        if self._opened is None or not self._stored.sharded:
            with reading(self._opened):
                return self._fetched(shard, indexes)
        with self._opened.explaining():
            return self._fetched(shard, indexes)

    def _fetched(self, shard: int, indexes: list[int]) -> list[Payload]:
        place = self._object(shard)
        if not self._stored.sharded:
            limit = largest_file_bytes(self._stored)
            with place.reading():
                payload = place.store.read(place.key, 0, limit + 1)
            check_length(str(place), len(payload), limit)
            return [memoryview(payload)] * len(indexes)
        version, entries, checked = self._shard(shard)
        first = shard * self._per_file
        wanted = [present_entry(entries, index, index - first, str(place)) for index in indexes]
        parts = place.parts([(offset, offset + length) for offset, length in wanted], version)
        try:
            checked.result()
        except BaseException:  # the next fetch opens the shard again
            with self._lock:
                self._shards.pop(shard, None)
            raise
        return parts

    def _object(self, shard: int) -> StorePath:
        return self._place / self._stored.file_key(shard)

    def _shard(self, number: int) -> _Shard:
        """A shard, requested once by the first thread that needs it."""
        with self._lock:
            known = self._shards.get(number)
            if known is None:
                mine = self._shards[number] = Future()
                while len(self._shards) > self._max_shards:
                    self._shards.popitem(last=False)
            else:
                self._shards.move_to_end(number)
        if known is not None:
            return known.result()
        try:
            mine.set_result(self._ask(self._object(number)))
        except BaseException as error:
            with self._lock:
                self._shards.pop(number, None)
            mine.set_exception(error)
        return mine.result()

    def _ask(self, place: StorePath) -> _Shard:
        stored = self._stored
        with place.reading():
            if stored.index_at_end:
                data, entry = place.store.read_end(place.key, index_length(stored))
            else:
                entry = place.store.head(place.key)
                data = place.store.read(place.key, 0, index_length(stored), entry.version)
        check_length(str(place), entry.size, largest_file_bytes(stored))
        index = parse_index(stored, memoryview(data), entry.size, str(place))
        return _Shard(entry.version, index, start(self._check))

    def _check(self) -> None:
        if self._opened is not None:
            self._opened.check()


class _Plan:
    """Zarr chunks that one thread reads soon, in rising order. Nothing is requested before the first is read, unless
    `begin` is called: earlier ones may be in the cache."""

    def __init__(self, payloads: StorePayloads, indexes: Int64) -> None:
        self._payloads = payloads
        self._indexes = indexes
        self._pieces: Iterator[tuple[int, list[int]]] | None = None
        self._begun: deque[tuple[list[int], Future[list[Payload]]]] = deque()
        self._found: dict[int, Payload] = {}
        self._is_small = len(indexes) <= payloads.piece_chunks * PIECES_AHEAD
        self.is_ended = False

    def begin(self, first: int = 0) -> None:
        """Send the first requests, from number `first` of the Zarr chunks on."""
        self._pieces = self._payloads.pieces(self._indexes[first:].tolist())
        self._ask(self._pieces)

    def take(self, index: int) -> Payload | None:
        """Wait for the encoded bytes. Return None if they were not announced, are far ahead, or were taken before from
        a plan that is too large to be kept."""
        if self._pieces is None:
            self.begin(int(np.searchsorted(self._indexes, index)))
        assert self._pieces is not None
        if any(index in piece for piece, _ in self._begun):
            while index not in self._found:
                piece, future = self._begun.popleft()
                self._found.update(zip(piece, future.result(), strict=True))
            self._ask(self._pieces)
        return self._found.get(index) if self._is_small else self._found.pop(index, None)

    def end(self) -> None:
        """Drop the rest."""
        self.is_ended = True
        self._found.clear()
        self._begun.clear()

    def _ask(self, pieces: Iterator[tuple[int, list[int]]]) -> None:
        for shard, indexes in itertools.islice(pieces, PIECES_AHEAD - len(self._begun)):
            self._begun.append((indexes, start(partial(self._payloads.fetch, shard, indexes))))
