"""Arrays of integers that are read on demand: `elements[i]`, `elements[start:stop]`.

Elements is the interface. StoredElements is an array of a dataset: metadata, the source of its encoded Zarr chunks, and
a cache of decoded ones. Uncompressed files are mapped into memory instead: whole arrays of format 2
(flat_tokens/storage/mapped_stream.py), or single shards (flat_tokens/storage/payloads.py).
Decoding a Zarr chunk of 64 Ki tokens takes 0.15 ms, a third of the time of zarr.

Invariant: the elements equal those that zarr reads, except that a missing file is an error; zarr reads zeros. Only the
single file of a `seq_starts` of [0] may be missing if there is no manifest, because zarr does not write it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import integer, invalid
from flat_tokens.errors import CONVERT_AGAIN, DatasetError, RangeError, damaged
from flat_tokens.storage import zarr_metadata
from flat_tokens.storage.chunks import Positions, decode_chunk
from flat_tokens.storage.files import AbsentFileError, ReadBuffer
from flat_tokens.storage.mapped_stream import MappedStream
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.payloads import FilePayloads
from flat_tokens.storage.places import Payload, Place, StorePath
from flat_tokens.storage.store_payloads import StorePayloads
from flat_tokens.storage.zarr_metadata import ReadMetadata, StoredArray

CACHE_BYTES = 2**23  # decoded Zarr chunks per array
MAX_VIEWS = 2**16  # mapped Zarr chunks per array, 200 bytes each
_PAGE_CHUNKS = 4096  # Zarr chunks per page of `_is_compared`
_NO_NEEDS: Mapping[int, int] = MappingProxyType({})
_NOTHING = nullcontext()

Values = npt.NDArray[Any]


class Elements:
    """An array of integers. Picklable; safe to read from several threads at once.

    elements[i] is an int, with i in [-len, len). elements[start:stop] is a new array, with both ends in [0, len] and
    step 1. Subclasses implement `read_into`.

    chunk_elements: elements that are read together. Chunk `index` begins at index * chunk_elements.
    largest: no element may be greater; -1 for no limit.
    stored: how the array is stored, None for a view.

    Raise RangeError, an IndexError, for a position outside the array, and DatasetError for damage or an element above
    `largest`.
    """

    stored: StoredArray | None = None
    is_remote = False  # whether reading takes requests to a store

    def __init__(
        self, name: str, dtype: np.dtype[Any], count: int, chunk_elements: int, largest: int = -1
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.chunk_elements = chunk_elements
        self.largest = largest
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.dtype.name}[{self._count}])"

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            if key.step is not None and integer(f"{self.name}: step of the slice", key.step) != 1:
                raise RangeError(f"{self.name}: step of the slice must be 1 (got {key.step})")
            try:
                start, stop, _ = key.indices(self._count)
            except TypeError:
                raise invalid(self.name, "bounds of a slice must be integers", key) from None
            return self.read(start, max(start, stop))
        index = integer(f"{self.name}: index", key)
        if not -self._count <= index < self._count:
            raise RangeError(f"{self.name}: index must be in [{-self._count}, {self._count}) (got {index})")
        index %= self._count
        return int(self.read(index, index + 1)[0])

    def read(self, start: int, stop: int) -> Values:
        """The elements [start, stop) as a new array. Cost: decodes each Zarr chunk in the range that is not cached."""
        start, stop = integer("start", start), integer("stop", stop)
        self._check_range(start, stop)
        out = np.empty(stop - start, dtype=self.dtype)
        self.read_into(start, out)
        return out

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[Values]:
        """The elements of each range [start, stop) within the array, as new arrays. Cost: decodes each Zarr chunk once
        if the ranges rise, and no further than needed."""
        needed: dict[int, int] = {}
        for start, stop in ranges:
            for index in range(start // self.chunk_elements, -(-stop // self.chunk_elements)):
                needed[index] = max(needed.get(index, 0), stop - index * self.chunk_elements)
        found = [np.empty(stop - start, dtype=self.dtype) for start, stop in ranges]
        with self.expecting([start for start, _ in ranges], [stop for _, stop in ranges]):
            for (start, _), out in zip(ranges, found, strict=True):
                self.read_into(start, out, needed)
        return found

    def read_into(self, start: int, out: Values, needed: Mapping[int, int] = _NO_NEEDS) -> None:
        """Fill `out` with the elements [start, start + len(out)), which must be within the array.

        needed: for some chunks, how many of their first elements the caller reads now or soon."""
        raise NotImplementedError

    def peek(self, start: int, stop: int, is_checked: bool = True) -> Values:
        """The elements [start, stop) within the array, as a read-only view if they are mapped, else as a new array.

        is_checked: False for callers that compare the elements with `largest` themselves."""
        return self.read(start, stop)

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """A context in which one thread reads the elements [starts[i], stops[i]), about in this order.

        On a store several requests are in flight then; at_once sends the first of them before the context is entered.
        In a folder the last shard stays open, and the dataset is compared with the opened one once, at the end. An
        inner context has no effect.
        """
        return _NOTHING

    def stream(self) -> MappedStream | None:
        """All elements as one mapped array, None if they cannot be mapped."""
        return None

    @property
    def is_mapped(self) -> bool:
        """Whether reading takes no decoding and no copy."""
        return self.stream() is not None

    def load_chunk(
        self,
        index: int,
        scratch: Values | None,
        stop: int | None = None,
        is_checked: bool = True,
    ) -> Values:
        """The elements of chunk `index`, without the cache, for callers that read each chunk once.

        scratch: memory of chunk_elements for the result; None for new memory. The result must not be written.
        stop: number of elements that are needed; the result may end there or later.
        is_checked: False for callers that compare the elements with `largest` themselves."""
        first = index * self.chunk_elements
        count = min(self.chunk_elements, self._count - first)
        values = np.empty(count, dtype=self.dtype) if scratch is None else scratch[:count]
        self.read_into(first, values)
        return values

    def last_of_chunk(self, index: int) -> int | None:
        """The last element of the full chunk `index` if it takes less than decoding the chunk, else None. It is not
        compared with `largest` or with a checksum."""
        return None

    def check(self, values: Values, first: int) -> None:
        """Raise DatasetError if an element is above `largest`. first: position of values[0]. 0.1 ns per element."""
        check_largest(values, self.largest, self.stored or self.name, first)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Values]]:
        """(position, elements) of [start, stop), chunk by chunk. Each overwrites the previous one."""
        self._check_range(start, stop)
        chunk = self.chunk_elements
        scratch = None if self.is_mapped else np.empty(chunk, dtype=self.dtype)
        # In a folder each chunk is read in a separate context, because the caller runs between two of them.
        with self.expecting((start,), (stop,)) if self.is_remote else _NOTHING:
            for index in range(start // chunk, -(-stop // chunk)):
                first = index * chunk
                values = self.load_chunk(index, scratch)
                low = max(start - first, 0)
                yield first + low, values[low : stop - first]

    def _check_range(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self._count:
            raise RangeError(f"{self.name}: range must be within [0, {self._count}) (got [{start}, {stop}))")


class StoredElements(Elements):
    """An array of a dataset.

    stored: how it is stored.
    opened: the manifest of the dataset, None without one.
    missing_is_zero: a missing file contains zeros, as in zarr.
    """

    stored: StoredArray

    def __init__(
        self,
        name: str,
        stored: StoredArray,
        opened: OpenedManifest | None,
        largest: int = -1,
        missing_is_zero: bool = False,
    ) -> None:
        super().__init__(name, np.dtype(stored.dtype), stored.element_count, stored.chunk_elements, largest)
        self.stored = stored
        self.is_remote = isinstance(stored.path, StorePath)
        self._is_viewed = stored.sharded and stored.codecs.is_uncompressed and not self.is_remote
        self._opened = opened
        self._missing_is_zero = missing_is_zero
        self._reset()
        _ALL.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.stored, self._opened, self.largest, self._missing_is_zero)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        path = self.stored.path
        self._payloads: FilePayloads | StorePayloads
        if isinstance(path, StorePath):
            self._payloads = StorePayloads(self.stored, path, self._opened)
        else:
            self._payloads = FilePayloads(self.stored, self._opened)
        self._cache: OrderedDict[int, tuple[Values, int]] = OrderedDict()  # values, and how many are decoded
        self._spare: list[Values] = []
        self._last_index = -2
        # Whether the checksum of a Zarr chunk was compared.
        self._is_compared = defaultdict[int, bytearray](partial(bytearray, _PAGE_CHUNKS))
        # Mapped Zarr chunks of shards, after their checksums were compared.
        self._views: dict[int, Values] = {}
        self._stream: MappedStream | None = None
        self._is_stream_known = self._missing_is_zero

    # -- mapped files

    def stream(self) -> MappedStream | None:
        """See Elements."""
        if not self._is_stream_known:
            with self._lock:
                if not self._is_stream_known:
                    stored, largest = self.stored, self.largest  # a method would keep the mappings in a cycle

                    def check(values: Values, first: int) -> None:
                        check_largest(values, largest, stored, first)

                    self._stream = MappedStream.create(stored, self._opened, check)
                    self._is_stream_known = True
        return self._stream

    def peek(self, start: int, stop: int, is_checked: bool = True) -> Values:
        """See Elements. Cost: 0.5 us for a view, and 0.8 us to check 1,024 elements."""
        stream = self._stream or self.stream()
        values = self._view(start, stop) if stream is None else stream.view(start, stop)
        if values is None:
            return self.read(start, stop)
        if is_checked:
            self.check(values, start)
        return values

    def _view(self, start: int, stop: int) -> Values | None:
        """Return elements of one mapped Zarr chunk of a shard, None unless its checksum was compared."""
        index, offset = divmod(start, self.chunk_elements)
        view = self._views.get(index)
        stop += offset - start
        return None if view is None or stop > self.chunk_elements else view[offset:stop]

    # -- decoded Zarr chunks

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Elements."""
        return self._payloads.expecting(starts, stops, at_once)

    def read_into(self, start: int, out: Values, needed: Mapping[int, int] = _NO_NEEDS) -> None:
        """See Elements."""
        chunk, stop = self.chunk_elements, start + len(out)
        stream = self.stream()
        if stream is not None:
            out[:] = stream.view(start, stop)
        elif 0 < len(out) <= chunk - start % chunk:
            self._copy(start // chunk, start % chunk, out, needed)
        elif len(out):
            with self.expecting((start,), (stop,)):
                for index in range(start // chunk, -(-stop // chunk)):
                    low, high = max(start, index * chunk), min(stop, (index + 1) * chunk)
                    self._copy(index, low - index * chunk, out[low - start : high - start], needed)
        self.check(out, start)

    def _copy(self, index: int, offset: int, out: Values, needed: Mapping[int, int]) -> None:
        """Copy elements of Zarr chunk `index` from the cache, or decode it. A random access decodes no further than
        needed, sequential accesses decode the whole chunk."""
        stop = offset + len(out)
        view = self._views.get(index)
        if view is not None:
            out[:] = view[offset:stop]
            return
        with self._lock:
            follows = 0 <= index - self._last_index <= 1
            self._last_index = index
            kept = self._cache.get(index)
            if kept is not None and stop <= kept[1]:
                self._cache.move_to_end(index)
                out[:] = kept[0][offset:stop]
                return
            memory = self._spare.pop() if self._spare else np.empty(self.chunk_elements, dtype=self.dtype)
        count = (
            len(memory) if follows or kept is not None else min(max(stop, needed.get(index, 0)), len(memory))
        )
        filled = self._decode(index, memory, count)
        if self._opened is not None and self._opened.is_reading:
            self._opened.check()  # before others see it in the cache
        out[:] = memory[offset:stop]
        with self._lock:
            replaced = self._cache.pop(index, None)
            self._cache[index] = memory, filled
            if replaced is None and len(self._cache) > max(2, CACHE_BYTES // self.stored.chunk_bytes):
                _, replaced = self._cache.popitem(last=False)
            if replaced is not None:
                self._spare = [replaced[0]]  # memory that was touched before saves a third of the time

    def load_chunk(
        self,
        index: int,
        scratch: Values | None,
        stop: int | None = None,
        is_checked: bool = True,
    ) -> Values:
        """See Elements. Elements of a mapped array are not checked."""
        first = index * self.chunk_elements
        count = min(self.chunk_elements, self._count - first)
        stream = self.stream()
        if stream is not None:
            return stream.view(first, first + count)
        values = self._view(first, first + count)
        if values is None:
            memory = np.empty(self.chunk_elements, dtype=self.dtype) if scratch is None else scratch
            filled = self._decode(index, memory, self.chunk_elements if stop is None else stop)
            values = memory[: min(count, filled)]
        if is_checked:
            self.check(values, first)
        return values

    def _decode(self, index: int, out: Values, count: int) -> int:
        """Decode a whole Zarr chunk, or at least its first `count` elements. Return how many were decoded.

        The first decoding is whole and compares checksums, later ones skip zstd checksums."""
        page, place = divmod(index, _PAGE_CHUNKS)
        is_compared = bool(self._is_compared[page][place])
        is_front = is_compared and count < len(out)
        buffer = ReadBuffer.take()
        try:
            payload, path = self._payloads.read(index, buffer)
            filled = decode_chunk(
                self.stored, payload, out, path, count if is_front else None, not is_compared
            )
        except AbsentFileError:
            if not self._missing_is_zero:
                raise
            out[:] = 0
            return len(out)
        finally:
            buffer.give()
        self._is_compared[page][place] = 1
        if self._is_viewed and not is_front:
            self._add_view(index, payload)
        return filled

    def _add_view(self, index: int, payload: Payload) -> None:
        """Keep a view of a Zarr chunk if it is mapped."""
        if self._payloads.is_mapped(index):
            if len(self._views) >= MAX_VIEWS:
                self._views.clear()
            self._views[index] = np.frombuffer(payload, self.dtype, self.chunk_elements)

    def last_of_chunk(self, index: int) -> int | None:
        """See Elements. Cost: reads the file."""
        stream = self.stream()
        if stream is not None:
            return int(
                stream.view((index + 1) * self.chunk_elements - 1, (index + 1) * self.chunk_elements)[0]
            )
        buffer = ReadBuffer.take()
        try:
            payload, path = self._payloads.read(index, buffer)
            return self.stored.codecs.last_element(payload, self.dtype, self.chunk_elements)
        except AbsentFileError:
            return None  # decoding raises the error
        except ValueError as error:
            if isinstance(error, DatasetError):
                raise
            raise damaged(path, str(error)) from None
        finally:
            buffer.give()


def check_largest(values: Values, largest: int, where: str | StoredArray, first: int) -> None:
    """Raise DatasetError if an encoded token is above `largest`, which is 2 * max_token_id + 1.

    where: a name, or the array, to name its file. first: position of values[0]."""
    if largest < 0 or not len(values) or int(np.maximum.reduce(values)) <= largest:
        return
    at = int(values.argmax())
    if isinstance(where, StoredArray):
        where = where.file_name((first + at) // where.shard_elements)
    what = f"ID of token {first + at} must be at most max_token_id = {largest >> 1} (got {values[at] >> 1})"
    raise damaged(where, what, CONVERT_AGAIN)


def open_elements(
    name: str,
    path: Place,
    dtype: np.dtype[Any],
    opened: OpenedManifest | None,
    largest: int = -1,
    read: ReadMetadata = zarr_metadata.read_if_there,
    lone_zero_may_miss: bool = False,
) -> StoredElements:
    """Open the array at `path`. Raise DatasetError unless its data type is `dtype`.

    opened: the manifest of its dataset, None without one.
    read: returns its metadata.
    lone_zero_may_miss: the file of an array [0] may be missing."""
    stored = zarr_metadata.read_array(path, read)
    if stored.dtype != dtype.str:
        raise DatasetError(f"{name}: data type must be {dtype.name} in flat-tokens (got {stored.dtype})")
    missing_is_zero = lone_zero_may_miss and stored.element_count == 1
    return StoredElements(name, stored, opened, largest, missing_is_zero)


_ALL: weakref.WeakSet[StoredElements] = weakref.WeakSet()


def _reset_all() -> None:
    """In the child of a fork, another thread of the parent may have held a lock or been filling memory."""
    for elements in list(_ALL):
        elements._reset()


os.register_at_fork(after_in_child=_reset_all)
