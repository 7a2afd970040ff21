"""Reading one stored array by position: `elements[i]`, `elements[start:stop]`.

The usual layouts are read here (flat_tokens/storage/chunk_source.py): raw zarr chunks are mapped into memory, others
decoded, 0.15 ms for 64 Ki tokens where zarr needs half a millisecond more. Any other one-dimensional integer
array is left to the zarr library (flat_tokens/storage/foreign.py). Invariant: what is returned equals
what zarr reads, but that a missing file is an error; only the one file of [0] may miss, where no manifest
promises it (zarr itself writes none for it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import integer, invalid
from flat_tokens.errors import DatasetError, RangeError
from flat_tokens.storage import zarr_metadata
from flat_tokens.storage.chunk_source import ChunkSource, check_largest
from flat_tokens.storage.chunks import Positions
from flat_tokens.storage.foreign import ForeignArray
from flat_tokens.storage.mapped_stream import MappedStream
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place, StorePath
from flat_tokens.storage.zarr_metadata import ForeignLayoutError, ReadMetadata, StoredArray

NOTHING_NEEDED: Mapping[int, int] = MappingProxyType({})
_NOTHING = nullcontext()
FOREIGN_BLOCK = 2**18  # elements that are asked of zarr at once


class Elements:
    """A stored array of integers, read on demand. Picklable; safe to read from several threads at once.

    len(elements) is the count; elements[i] an int, i in [-count, count); elements[start:stop] a new numpy
    array, both ends in [0, count], step 1. RangeError (an IndexError) names bound and value; DatasetError
    tells damage, also an element above `largest`."""

    def __init__(
        self,
        name: str,
        dtype: np.dtype[Any],
        count: int,
        chunk_elements: int,
        largest: int | None,
        stored: StoredArray | None = None,
        missing_is_zero: bool = False,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.stored = stored
        self.chunk_elements = chunk_elements
        self._count = count
        self._largest = largest
        self._missing_is_zero = missing_is_zero
        self._source = None if stored is None else ChunkSource(stored, missing_is_zero, largest)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.dtype.name}[{self._count}])"

    @property
    def largest(self) -> int:
        """No element may be greater; -1 where nothing is said, so that a check decides."""
        return -1 if self._largest is None else self._largest

    @property
    def _where(self) -> str | StoredArray:
        """What an error names: the file, where it is known which one."""
        return self.name if self.stored is None else self.stored

    @property
    def is_lone_zero(self) -> bool:
        """Whether this is the seq_starts of no sequences, [0]: zarr leaves out a zarr chunk of zeros when it
        writes."""
        return self._count == 1

    @property
    def file_count(self) -> int:
        """Files of zarr chunks that a complete array has."""
        assert self.stored is not None
        return self.stored.file_count

    @property
    def is_mapped(self) -> bool:
        """Whether the elements lie in files as they are, so that reading them costs no decoding."""
        return self._source is not None and self._source.is_raw

    @property
    def is_remote(self) -> bool:
        """Whether reading them takes requests to a store."""
        return self.stored is not None and isinstance(self.stored.path, StorePath)

    @property
    def is_decoded(self) -> bool:
        """Whether `load_chunk` decodes zarr chunks into the memory that it is given."""
        return self._source is not None and not self._source.is_raw

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

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """The elements [start, stop) as a new array. Cost: each zarr chunk touched is decoded whole; the
        last ones are kept."""
        start, stop = integer("start", start), integer("stop", stop)
        if not 0 <= start <= stop <= self._count:
            raise RangeError(f"{self.name}: range must be within [0, {self._count}) (got [{start}, {stop}))")
        out = np.empty(stop - start, dtype=self.dtype)
        self.read_into(start, out)
        return out

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[npt.NDArray[Any]]:
        """The elements of each range [start, stop), which must be inside the array, as new arrays. Cost: if the
        ranges rise, each zarr chunk is decoded once, as far as the last element needed of it."""
        needed: dict[int, int] = {}  # of each zarr chunk: elements up to the last one needed
        for start, stop in ranges:
            for index in range(start // self.chunk_elements, -(-stop // self.chunk_elements)):
                needed[index] = max(needed.get(index, 0), stop - index * self.chunk_elements)
        found = [np.empty(stop - start, dtype=self.dtype) for start, stop in ranges]
        with self.expecting([start for start, _ in ranges], [stop for _, stop in ranges]):
            for (start, _), out in zip(ranges, found, strict=True):
                self.read_into(start, out, needed)
        return found

    def read_into(
        self, start: int, out: npt.NDArray[Any], needed: Mapping[int, int] = NOTHING_NEEDED
    ) -> None:
        """Fill `out` with the elements [start, start + len(out)), which must be inside the array. needed: of zarr
        chunks, how many of their first elements the caller will read, now or soon."""
        if self._source is None:
            self._read_otherwise(start, out)
            return
        index, offset = divmod(start, self.chunk_elements)
        stop = offset + len(out)
        if len(out) > 0 and stop <= self.chunk_elements:
            self._source.copy(index, offset, stop, out, needed.get(index, 0))
        else:
            self._copy_chunks(self._source, start, out, needed)
        check_largest(out, self._largest, self._where, start)

    def _copy_chunks(
        self, source: ChunkSource, start: int, out: npt.NDArray[Any], needed: Mapping[int, int]
    ) -> None:
        chunk = self.chunk_elements
        at, stop = start, start + len(out)
        with source.expecting((start,), (stop,)):
            while at < stop:
                index, offset = divmod(at, chunk)
                count = min(chunk - offset, stop - at)
                into = out[at - start : at - start + count]
                source.copy(index, offset, offset + count, into, needed.get(index, 0))
                at += count

    def peek(self, start: int, stop: int, is_checked: bool = True) -> npt.NDArray[Any]:
        """The elements [start, stop), which must be inside the array; a read-only view where they are mapped
        and lie in one zarr chunk, else a new array. is_checked: False for those who compare them with `largest`
        themselves. Cost: 0.4 us for a view, and 0.8 us for the check of 1,024."""
        source = self._source
        if source is not None and source.is_raw:
            chunk = self.chunk_elements
            index = start // chunk
            first = index * chunk
            if stop - first <= chunk:
                values = source.mapped(index)[start - first : stop - first]
                if not is_checked or self._largest is None:
                    return values
                if start < stop and np.maximum.reduce(values) > self._largest:
                    check_largest(values, self._largest, self._where, start)
                return values
        return self.read(start, stop)

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """A context in which a thread reads the elements [starts[i], stops[i]), about in their order in the array.

        From a store, several requests are under way at once then. at_once: this call sends the first of them, and the
        thread may enter the context later. From a disk a shard stays open. Within another such context it changes
        nothing.
        """
        return _NOTHING if self._source is None else self._source.expecting(starts, stops, at_once)

    def stream(self) -> MappedStream | None:
        """All elements as one mapped array, None where they are not stored so that this is possible."""
        return None if self._source is None else self._source.stream()

    def load_chunk(
        self,
        index: int,
        scratch: npt.NDArray[Any] | None,
        stop: int | None = None,
        is_checked: bool = True,
        is_brief: bool = False,
    ) -> npt.NDArray[Any]:
        """The elements of zarr chunk `index`, of which at least one is in the array, without the cache: for
        those who read each zarr chunk once.

        scratch: dtype[chunk_elements], which may be overwritten, or None for memory of its own. stop: nothing behind
        it is needed, and what is returned may end there, or later. It is valid until scratch is written again, and
        must not be written. Elements of a mapped array are not compared with `largest`, nor decoded ones for those who
        do it themselves (is_checked False). is_brief: see ChunkSource.decode."""
        first = index * self.chunk_elements
        count = min(self.chunk_elements, self._count - first)
        if self._source is None:
            return self.read(first, first + count)
        if self._source.is_raw:
            return self._source.mapped(index)[:count]
        values = np.empty(self.chunk_elements, dtype=self.dtype) if scratch is None else scratch
        filled = self._source.decode(index, values, stop, is_checked, is_brief)
        return values[: min(count, filled)]

    def last_of_chunk(self, index: int) -> int | None:
        """The last element of zarr chunk `index`, which is full, or None where it must be decoded for it. Not compared
        with `largest`, nor with a checksum inside the compressed bytes."""
        return None if self._source is None else self._source.last(index)

    def check(self, values: npt.NDArray[Any], first: int) -> None:
        """Raise DatasetError if one of the elements from position `first` on is above `largest`. 0.1 ns an element."""
        check_largest(values, self._largest, self._where, first)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """(position, elements) of [start, stop), zarr chunk by zarr chunk; each is overwritten by the next."""
        if not 0 <= start <= stop <= self._count:
            raise RangeError(f"{self.name}: range must be within [0, {self._count}) (got [{start}, {stop}))")
        chunk = self.chunk_elements
        scratch = None if self.is_mapped else np.empty(chunk, dtype=self.dtype)
        with self.expecting((start,), (stop,)):
            for index in range(start // chunk, -(-stop // chunk)):
                first = index * chunk
                values = self.load_chunk(index, scratch)
                low = max(start - first, 0)
                yield first + low, values[low : stop - first]

    def foreign_bytes(self, start: int, stop: int) -> int:
        """The bytes of the files whose first element is in [start, stop), of an array that zarr reads."""
        raise NotImplementedError

    def _read_otherwise(self, start: int, out: npt.NDArray[Any]) -> None:
        """As `read_into`, of an array without a source of zarr chunks."""
        raise NotImplementedError


class ForeignElements(Elements):
    """A stored array that the zarr library reads."""

    def __init__(self, name: str, array: ForeignArray, missing_is_zero: bool, largest: int | None) -> None:
        count, chunk_elements = array.element_count, max(array.chunk_elements, FOREIGN_BLOCK)
        super().__init__(name, array.dtype, count, chunk_elements, largest, missing_is_zero=missing_is_zero)
        self._array = array

    @property
    def file_count(self) -> int:
        return self._array.file_count

    def foreign_bytes(self, start: int, stop: int) -> int:
        sizes = self._array.file_sizes(start, stop, self._missing_is_zero)
        return sum(size for first, size in sizes if first >= start)

    def _read_otherwise(self, start: int, out: npt.NDArray[Any]) -> None:
        values = self._array.read(start, start + len(out), self._missing_is_zero)
        self.check(values, start)
        out[:] = values


def open_elements(
    name: str,
    path: Place,
    dtype: np.dtype[Any],
    opened: OpenedManifest | None,
    largest: int | None = None,
    read: ReadMetadata = zarr_metadata.read_if_there,
    lone_zero_may_miss: bool = False,
) -> Elements:
    """The array at `path`. DatasetError unless its data type is `dtype`; opened: the manifest of its dataset, None if
    it has none; read: gives its metadata."""
    stored = foreign = None
    try:
        stored = zarr_metadata.read_array(path, read)._replace(opened=opened)
        stored_dtype, count = np.dtype(stored.dtype), stored.element_count
    except ForeignLayoutError as error:
        if isinstance(path, StorePath):
            raise  # zarr would need a way of its own to the store
        foreign = ForeignArray(path, error)
        stored_dtype, count = foreign.dtype, foreign.element_count
    if stored_dtype != dtype:
        raise DatasetError(f"{name}: data type must be {dtype.name} in flat-tokens (got {stored_dtype})")
    missing_is_zero = lone_zero_may_miss and count == 1
    if foreign is not None:
        return ForeignElements(name, foreign, missing_is_zero, largest)
    assert stored is not None
    return Elements(name, dtype, count, stored.chunk_elements, largest, stored, missing_is_zero)
