"""From files to elements: the zarr chunks of an array, read without zarr, and shards, written without it.

A file of zarr format 2 is one zarr chunk. A shard of format 3 is its encoded zarr chunks one after the other
and an index: offset and length of each as two little-endian uint64, both 2^64 - 1 for a zarr chunk that is
not there, then the index's crc32c. Cost: one read a file or zarr chunk and the codec's work, where zarr adds
half a millisecond a read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import damaged
from flat_tokens.storage.codecs import crc32c_bytes
from flat_tokens.storage.zarr_metadata import StoredArray

ABSENT = 2**64 - 1
NO_INDEX = "truncated: too short for the index of a shard"
ShardIndex = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]
Positions = Int64 | Sequence[int]  # of elements in an array
ReadPart = Callable[[int, int], bytes | memoryview]


def pad(values: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """values with zeros behind them up to `length`, since zarr stores whole zarr chunks. [1, 2], 3 -> [1, 2,
    0]."""
    if len(values) == length:
        return values
    padded = np.zeros(length, dtype=values.dtype)
    padded[: len(values)] = values
    return padded


def chunks_of(starts: Positions, stops: Positions, chunk_elements: int) -> Int64:
    """The zarr chunks that ranges [starts[i], stops[i]) lie in, rising, each once. [0, 5], [3, 9], 4 -> [0, 1, 2]."""
    firsts = np.asarray(starts, dtype=np.int64) // chunk_elements
    counts = np.maximum(-(-np.asarray(stops, dtype=np.int64) // chunk_elements) - firsts, 0)
    return np.unique(np.arange(counts.sum()) + np.repeat(firsts - np.cumsum(counts) + counts, counts))


def join_shard(encoded: list[bytes], chunks_per_shard: int) -> bytes:
    """The bytes of a shard: its encoded zarr chunks as many as there are; those beyond the array are absent, as zarr
    writes it."""
    index = np.full((chunks_per_shard, 2), ABSENT, dtype="<u8")
    offset = 0
    for chunk_index, payload in enumerate(encoded):
        index[chunk_index] = offset, len(payload)
        offset += len(payload)
    index_bytes = index.tobytes()
    return b"".join([*encoded, index_bytes, crc32c_bytes(index_bytes)])


def largest_chunk_bytes(stored: StoredArray) -> int:
    """A bound on the encoded bytes of a zarr chunk: no codec doubles what it is given, but for a few bytes."""
    return 2 * stored.chunk_elements * np.dtype(stored.dtype).itemsize + 2**16


def largest_file_bytes(stored: StoredArray) -> int:
    """A bound on the length of one file of the array."""
    raw = stored.shard_elements * np.dtype(stored.dtype).itemsize
    return 2 * raw + 64 * (stored.shard_elements // stored.chunk_elements) + 2**16


def decode_chunk(
    stored: StoredArray,
    payload: bytes | memoryview,
    values: npt.NDArray[Any],
    path: str,
) -> None:
    """Fill `values`, one whole zarr chunk, from its encoded bytes; DatasetError names the file."""
    try:
        stored.codecs.decode(payload, values)
    except ValueError as error:
        raise damaged(path, str(error)) from None


def decode_again(
    stored: StoredArray,
    payload: bytes | memoryview,
    values: npt.NDArray[Any],
    path: str,
    count: int,
) -> int:
    """Fill at least the first `count` elements of a zarr chunk that was decoded whole before, so that what it holds
    for checksums need not be compared; how many are filled. DatasetError names the file."""
    try:
        return stored.codecs.decode_front(payload, values, count)
    except ValueError as error:
        raise damaged(path, str(error)) from None


def last_element(stored: StoredArray, payload: bytes | memoryview, path: str) -> int | None:
    """The last element of a zarr chunk, None where it must be decoded for it; see CodecChain.last_element. DatasetError
    names the file."""
    itemsize = np.dtype(stored.dtype).itemsize
    try:
        return stored.codecs.last_element(payload, stored.chunk_elements * itemsize, itemsize)
    except ValueError as error:
        raise damaged(path, str(error)) from None


def file_chunks(
    stored: StoredArray, file_index: int, read: ReadPart, size: int
) -> Iterator[tuple[int, tuple[int, int] | None]]:
    """The encoded zarr chunks of a file of `size` bytes, those that hold elements of the array, in order.

    read(offset, length): that part of the file. Yields (index of the zarr chunk in the array, its offset and length in
    the file, or None where a shard has none)."""
    per_file = stored.shard_elements // stored.chunk_elements
    first = file_index * per_file
    chunk_count = -(-stored.element_count // stored.chunk_elements)
    if not stored.sharded:
        yield first, (0, size)
        return
    path = stored.file_name(file_index)
    index_bytes = index_length(stored)
    at = size - index_bytes if stored.index_at_end else 0
    index = parse_index(stored, read(max(at, 0), min(index_bytes, size)), size, path)
    for chunk_index in range(first, min(first + per_file, chunk_count)):
        offset, length = (int(value) for value in index[chunk_index - first])
        yield chunk_index, None if offset == ABSENT else (offset, length)


def index_length(stored: StoredArray) -> int:
    """Bytes of the index of a shard."""
    return 16 * (stored.shard_elements // stored.chunk_elements) + 4 * stored.index_crc32c


def parse_index(stored: StoredArray, data: bytes | memoryview, file_bytes: int, path: str) -> ShardIndex:
    """The index of a shard, uint64[zarr chunks, 2] of offset and length, every entry inside the file and no longer than
    a zarr chunk can be; DatasetError."""
    if len(data) != index_length(stored):
        raise damaged(path, NO_INDEX)
    body = data[: len(data) - 4] if stored.index_crc32c else data
    if stored.index_crc32c and crc32c_bytes(body) != bytes(data[len(body) :]):
        raise damaged(path, "crc32c mismatch in the shard's index")
    index = np.frombuffer(body, dtype="<u8").reshape(-1, 2)
    offsets, lengths = index[:, 0], index[:, 1]
    present = (offsets != ABSENT) | (lengths != ABSENT)
    outside = present & ((lengths > file_bytes) | (offsets > file_bytes - np.minimum(lengths, file_bytes)))
    if outside.any():
        raise damaged(path, "the shard's index points outside the file")
    most = largest_chunk_bytes(stored)
    if file_bytes > most and (present & (lengths > most)).any():
        longest = int(lengths[present].max())
        raise damaged(path, f"a zarr chunk must have at most {most} bytes (got {longest})")
    return index
