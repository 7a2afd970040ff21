"""Arrow arrays of texts cut and joined by how many bytes they are, which depends on the texts and not on the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stores import RandomFile

_I32_FIELD = 0x15  # Thrift's compact protocol: the next field, an i32
_DICTIONARY_PAGE = 2
_HEADER_BYTES = 16  # two fields of at most six bytes each


def cut_by_bytes(array: Any, most_bytes: int) -> Iterator[Any]:
    """The array in slices of at most so many bytes of text, or of one value that is longer.

    array: of texts, or of a dictionary of texts, whose slices are cut by what they come to when decoded.
    """
    import pyarrow

    if isinstance(array, pyarrow.DictionaryArray):
        indices = array.indices.fill_null(0).to_numpy()
        lengths = (
            lengths_of(array.dictionary)[indices] if len(array.dictionary) else np.zeros(len(array), np.int64)
        )
    elif array.nbytes <= most_bytes:
        yield array
        return
    else:
        lengths = lengths_of(array)
    ends = np.cumsum(lengths)
    start, before = 0, 0
    while start < len(array):
        stop = max(start + 1, int(np.searchsorted(ends, before + most_bytes, side="right")))
        yield array.slice(start, stop - start)
        start, before = stop, int(ends[stop - 1])


def lengths_of(array: Any) -> NDArray[np.int64]:
    """int64[values]: the bytes of each text of the array, 0 for null."""
    import pyarrow.compute

    kind = str(array.type)
    if kind.endswith("_view"):
        array = array.cast(f"large_{kind.removesuffix('_view')}")
    lengths = pyarrow.compute.binary_length(array).fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)


def joined(arrays: Iterable[Any], least_bytes: int, most_rows: int) -> Iterator[Any]:
    """The values of the arrays in order, in arrays of so many bytes or rows; what is not joined is not copied."""
    parts: list[Any] = []
    part_bytes = rows = 0
    for array in arrays:
        if parts and rows + len(array) > most_rows:
            yield _one(parts)
            parts, part_bytes, rows = [], 0, 0
        parts.append(array)
        part_bytes += array.nbytes
        rows += len(array)
        if part_bytes >= least_bytes or rows >= most_rows:
            yield _one(parts)
            parts, part_bytes, rows = [], 0, 0
    if parts:
        yield _one(parts)


def dictionary_page_bytes(file: RandomFile, place: int) -> int:
    """How long the dictionary is, unpacked, whose page begins at this byte of a Parquet file; 0 if none begins there.

    No value of it is longer. It is what the page's header says, to which a reader holds it.
    """
    buffer = bytearray(_HEADER_BYTES)
    with memoryview(buffer) as view:
        header = bytes(view[: file.readinto_at(place, view)])
    kind, stop = _i32(header, 0)
    size, _ = _i32(header, stop)
    return max(0, size) if kind == _DICTIONARY_PAGE else 0


def _i32(header: bytes, place: int) -> tuple[int, int]:
    """(the next field of a struct in Thrift's compact protocol, the place behind it); -1 for what is no i32."""
    if header[place : place + 1] != bytes([_I32_FIELD]):
        return -1, place
    value = shift = 0
    for stop in range(place + 2, min(len(header), place + 6) + 1):
        byte = header[stop - 1]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), stop
    return -1, place


def _one(parts: list[Any]) -> Any:
    import pyarrow

    return parts[0] if len(parts) == 1 else pyarrow.concat_arrays(parts)
