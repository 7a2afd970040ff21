"""Reading one stored array by position: `elements[i]`, `elements[start:stop]`.

The usual layouts are decoded here, zarr chunk by zarr chunk (0.1 ms for 64 Ki tokens where zarr needs half a
millisecond more); any other one-dimensional integer array is left to the zarr library, if its codecs are
known to run no code. Invariant: what is returned equals what zarr reads, but that a missing file is an error
if the dataset promises all files.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens import zarr_metadata
from flat_tokens.chunks import (
    ABSENT,
    ShardIndex,
    decode_chunk,
    index_length,
    largest_file_bytes,
    parse_index,
)
from flat_tokens.codecs import COMPRESSORS, FILTERS
from flat_tokens.errors import DatasetError, RangeError, printable
from flat_tokens.files import AbsentFileError, open_regular, read_whole
from flat_tokens.zarr_metadata import ForeignLayoutError, StoredArray

CACHED_INDEXES = 64  # of shards: 4 KiB each by default

# What the zarr library may be asked to decode. Names outside, pickle above all, are refused.
HARMLESS_CODECS = (
    COMPRESSORS
    | FILTERS
    | {"astype", "bitround", "fixedscaleoffset", "packbits", "quantize", "transpose"}
    | {"adler32", "bytes", "crc32", "crc32c", "fletcher32", "jenkins_lookup3", "sharding_indexed"}
)


class Elements:
    """A stored array of integers, read on demand. Picklable; safe to read from several threads at once.

    len(elements) is the count; elements[i] an int, i in [-count, count); elements[start:stop] a new numpy
    array, both ends in [0, count], step 1. RangeError (an IndexError) names bound and value; DatasetError
    tells damage."""

    def __init__(self, name: str, path: Path, dtype: np.dtype[Any], missing_is_zero: bool) -> None:
        self.name = name
        self.dtype = dtype
        self._missing_is_zero = missing_is_zero
        self._foreign: Any = None
        self._path = path
        self._forget()
        try:
            self.stored: StoredArray | None = zarr_metadata.read_array(path)
        except ForeignLayoutError as error:
            self.stored = None
            self._foreign = _open_foreign(path, error)
        stored_dtype = self._foreign.dtype if self.stored is None else np.dtype(self.stored.dtype)
        if stored_dtype != dtype:
            raise DatasetError(
                f"{name}: data type is {stored_dtype}, the format has {dtype.name}; not flat-tokens"
            )
        self._count = int(self._foreign.shape[0]) if self.stored is None else self.stored.element_count

    def _forget(self) -> None:
        self._last: tuple[int, npt.NDArray[Any]] | None = None
        self._indexes: OrderedDict[int, ShardIndex] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_foreign": None, "_last": None, "_indexes": OrderedDict()}

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.dtype.name}[{self._count}])"

    @property
    def is_lone_zero(self) -> bool:
        """Whether this is the seq_starts of no sequences, [0]: zarr leaves out a zarr chunk of zeros when it
        writes."""
        return self._count == 1

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            if key.step not in (None, 1):
                raise RangeError(f"{self.name}: a slice must have step 1, got {key.step}")
            start, stop, _ = key.indices(self._count)
            return self.read(start, max(start, stop))
        index = int(key)
        if not -self._count <= index < self._count:
            raise RangeError(f"{self.name}: index {index} is outside [0, {self._count})")
        index %= self._count
        return int(self.read(index, index + 1)[0])

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """The elements [start, stop) as a new array. Cost: each zarr chunk touched is decoded whole; the
        last one is kept."""
        if not 0 <= start <= stop <= self._count:
            raise RangeError(f"{self.name}: [{start}, {stop}) is outside [0, {self._count})")
        out = np.empty(stop - start, dtype=self.dtype)
        if self.stored is None:
            if self._foreign is None:
                self._foreign = _open_foreign(self._path, None)
            try:
                out[:] = self._foreign[start:stop]
            except (MemoryError, OSError):
                raise
            except Exception as error:  # zarr has no common base for what damaged zarr chunks provoke
                raise DatasetError(f"{self.name}: zarr cannot read it: {printable(str(error))}") from error
            return out
        chunk = self.stored.chunk_elements
        at = start
        while at < stop:
            index, offset = divmod(at, chunk)
            count = min(chunk - offset, stop - at)
            out[at - start : at - start + count] = self._chunk(self.stored, index)[offset : offset + count]
            at += count
        return out

    def _chunk(self, stored: StoredArray, index: int) -> npt.NDArray[Any]:
        last = self._last
        if last is not None and last[0] == index:
            return last[1]
        file_index, inside = divmod(index, stored.shard_elements // stored.chunk_elements)
        path = stored.file_path(file_index)
        try:
            payload = self._shard_part(stored, file_index, inside) if stored.sharded else None
            if not stored.sharded:
                payload = read_whole(path, largest_file_bytes(stored))
            if payload is None:
                where = printable(str(path))
                raise AbsentFileError(
                    f"{where}: zarr chunk {index} is not in the shard; zarr would read zeros"
                )
            values = np.empty(stored.chunk_elements, dtype=self.dtype)
            decode_chunk(stored, payload, values, path)
        except AbsentFileError:
            if not self._missing_is_zero:
                raise
            values = np.zeros(stored.chunk_elements, dtype=self.dtype)
        self._last = (index, values)
        return values

    def _shard_part(self, stored: StoredArray, file_index: int, inside: int) -> bytes | None:
        path = stored.file_path(file_index)
        file, size = open_regular(path)
        with file:
            index = self._indexes.get(file_index)
            if index is None:
                length = index_length(stored)
                if size < length:
                    raise DatasetError(
                        f"{printable(str(path))}: too short for the index of a shard; restore it"
                    )
                file.seek(size - length if stored.index_at_end else 0)
                index = parse_index(stored, file.read(length), size, path)
                self._indexes[file_index] = index
                while len(self._indexes) > CACHED_INDEXES:
                    self._indexes.popitem(last=False)
            offset, length = (int(value) for value in index[inside])
            if offset == ABSENT:
                return None
            file.seek(offset)
            payload = file.read(length)
        if len(payload) != length:
            raise DatasetError(
                f"{printable(str(path))}: ends before zarr chunk {inside}; restore it or convert again"
            )
        return payload


def _open_foreign(path: Path, reason: ForeignLayoutError | None) -> Any:
    """The array as the zarr library opens it, for layouts that this package does not decode itself."""
    import zarr

    names = _codec_names(path)
    strange = sorted(names - HARMLESS_CODECS)
    if strange:
        listed = printable(", ".join(strange), 80)
        raise DatasetError(
            f"{printable(str(path))}: codec {listed} is not allowed; rewrite the dataset without it"
        )
    try:
        array = zarr.open_array(path, mode="r")
    except Exception as error:  # zarr has no common base for what hostile metadata provokes
        raise DatasetError(str(reason or "") or f"{printable(str(path))}: {printable(str(error))}") from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DatasetError(
            f"{printable(str(path))}: {array.dtype} of {array.ndim} dimensions is not flat-tokens"
        )
    if not 0 < array.chunks[0] * array.dtype.itemsize <= zarr_metadata.LARGEST_CHUNK_BYTES:
        raise DatasetError(
            f"{printable(str(path))}: zarr chunks of {array.chunks[0]} elements; write other ones"
        )
    return array


def _codec_names(path: Path) -> set[str]:
    """All codec names in an array's metadata, wherever they hide; the prefix `numcodecs.` is left out."""
    v3 = (path / "zarr.json").is_file()
    node = zarr_metadata.read_json(path / ("zarr.json" if v3 else ".zarray"))
    found: set[str] = set()
    todo: list[Any] = [node.get("codecs")] if v3 else [node.get("filters"), node.get("compressor")]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo.extend(value)
        elif isinstance(value, dict):
            found.add(str(value.get("name" if v3 else "id")).removeprefix("numcodecs."))
            todo.extend(nested for nested in value.values() if isinstance(nested, dict | list) and v3)
    return found - {"None"}
