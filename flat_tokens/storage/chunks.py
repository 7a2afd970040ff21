"""The Zarr chunks in a file, and the index of a shard.

A file of Zarr format 2 is one Zarr chunk. A shard of format 3 consists of encoded Zarr chunks and an index: the offset
and length of each as two little-endian uint64, both 2^64 - 1 for an absent Zarr chunk, then the crc32c of the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import damaged, printable
from flat_tokens.format import Int64
from flat_tokens.storage.codecs import crc32c_bytes
from flat_tokens.storage.files import AbsentFileError, absent_chunk
from flat_tokens.storage.zarr_metadata import StoredArray

ABSENT = 2**64 - 1
NO_INDEX = "truncated: too short for the index of a shard"
ShardIndex = npt.NDArray[np.uint64]
Positions = Int64 | Sequence[int]  # of elements in an array
ReadPart = Callable[[int, int], bytes | memoryview]


def pad(values: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Append zeros up to `length`, because Zarr stores whole Zarr chunks. [1, 2], 3 -> [1, 2, 0]."""
    if len(values) == length:
        return values
    padded = np.zeros(length, dtype=values.dtype)
    padded[: len(values)] = values
    return padded


def chunks_of(starts: Positions, stops: Positions, chunk_elements: int) -> Int64:
    """The Zarr chunks of some ranges [starts[i], stops[i]), sorted and unique. [0, 5], [3, 9], 4 -> [0, 1, 2]."""
    firsts = np.asarray(starts, dtype=np.int64) // chunk_elements
    counts = np.maximum(-(-np.asarray(stops, dtype=np.int64) // chunk_elements) - firsts, 0)
    return np.unique(np.arange(counts.sum()) + np.repeat(firsts - np.cumsum(counts) + counts, counts))


def join_shard(encoded: list[bytes], chunks_per_shard: int) -> bytes:
    """The bytes of a shard. Zarr chunks past the end of the array are absent, as zarr writes it."""
    index = np.full((chunks_per_shard, 2), ABSENT, dtype="<u8")
    offset = 0
    for chunk_index, payload in enumerate(encoded):
        index[chunk_index] = offset, len(payload)
        offset += len(payload)
    index_bytes = index.tobytes()
    return b"".join([*encoded, index_bytes, crc32c_bytes(index_bytes)])


def max_chunk_bytes(stored: StoredArray) -> int:
    """An upper limit on the encoded bytes of a Zarr chunk: no codec doubles its input, except for a few bytes."""
    return 2 * stored.chunk_bytes + 2**16


def largest_file_bytes(stored: StoredArray) -> int:
    """An upper limit on the length of one file of the array."""
    per_file = stored.shard_elements // stored.chunk_elements
    return (2 * stored.chunk_bytes + 64) * per_file + 2**16


def decode_chunk(
    stored: StoredArray,
    payload: bytes | memoryview,
    values: npt.NDArray[Any],
    path: str,
    count: int | None = None,
    compare: bool = True,
) -> int:
    """Decode a whole Zarr chunk into `values`, or at least its first `count` elements. Return how many were decoded.

    compare: whether a whole decoding compares the checksums of zstd frames. Raise DatasetError, which names `path`."""
    try:
        if count is not None:
            return stored.codecs.decode_front(payload, values, count, compare)
        stored.codecs.decode(payload, values, compare)
    except ValueError as error:
        raise damaged(path, str(error)) from None
    return len(values)


def file_chunks(
    stored: StoredArray, file_index: int, read: ReadPart, size: int
) -> Iterator[tuple[int, tuple[int, int] | None]]:
    """The Zarr chunks of a file of `size` bytes, as far as the array goes: (index, (offset, length)).

    read(offset, length): that part of the file. The second item is None for a Zarr chunk that the shard lacks."""
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


def present_entry(entries: ShardIndex, index: int, inside: int, where: str) -> tuple[int, int]:
    """Offset and length of Zarr chunk `index`, which has number `inside` in its shard. Raise AbsentFileError if the
    shard lacks it."""
    offset, length = entries[inside].tolist()
    if offset == ABSENT:
        raise AbsentFileError(f"{printable(where)}: {absent_chunk(index)}")
    return offset, length


def index_length(stored: StoredArray) -> int:
    """Bytes of the index of a shard."""
    return 16 * (stored.shard_elements // stored.chunk_elements) + 4 * stored.index_crc32c


def parse_index(stored: StoredArray, data: bytes | memoryview, file_bytes: int, path: str) -> ShardIndex:
    """The index of a shard, uint64[n, 2] of offsets and lengths. Raise DatasetError for an entry outside the file or
    longer than a Zarr chunk can be."""
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
    limit = max_chunk_bytes(stored)
    if file_bytes > limit and (present & (lengths > limit)).any():
        longest = int(lengths[present].max())
        raise damaged(path, f"a zarr chunk must have at most {limit} bytes (got {longest})")
    return index
