"""The Zarr chunks in a file, and the index of a shard.

A file of Zarr format 2 is one Zarr chunk. A shard of format 3 consists of encoded Zarr chunks and an index: the offset
and length of each as two little-endian uint64, both 2^64 - 1 for an absent Zarr chunk, then the crc32c of the index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import RESTORE, damaged, printable
from flat_tokens.storage.codecs import crc32c_bytes
from flat_tokens.storage.files import AbsentFileError, check_length
from flat_tokens.storage.places import Payload
from flat_tokens.storage.zarr_metadata import ArrayMetadata

ABSENT = 2**64 - 1
ShardIndex = npt.NDArray[np.uint64]
ReadPart = Callable[[int, int], Payload]  # (offset, length)


def pad(values: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """Append zeros up to `length`, because Zarr stores whole Zarr chunks. [1, 2], 3 -> [1, 2, 0]."""
    if len(values) == length:
        return values
    padded = np.zeros(length, dtype=values.dtype)
    padded[: len(values)] = values
    return padded


def join_shard(encoded: list[bytes], chunks_per_shard: int) -> bytes:
    """The bytes of a shard. Zarr chunks past the end of the array are absent, as zarr writes it."""
    index = np.full((chunks_per_shard, 2), ABSENT, dtype="<u8")
    offset = 0
    for chunk_index, payload in enumerate(encoded):
        index[chunk_index] = offset, len(payload)
        offset += len(payload)
    index_bytes = index.tobytes()
    return b"".join([*encoded, index_bytes, crc32c_bytes(index_bytes)])


def read_index(array: ArrayMetadata, read: ReadPart, size: int, path: str) -> ShardIndex:
    """The index of a file of `size` bytes. A file of format 2 has one entry, for all of it. See parse_index."""
    check_length(path, size, array.max_file_bytes)
    if not array.sharded:
        return np.array([[0, size]], dtype=np.uint64)
    length = min(array.index_bytes, size)
    return parse_index(array, read(size - length if array.index_at_end else 0, length), size, path)


def parse_index(array: ArrayMetadata, data: Payload, file_bytes: int, path: str) -> ShardIndex:
    """The index of a shard, uint64[n, 2] of offsets and lengths. Raise DatasetError for an entry outside the file or
    longer than a Zarr chunk can be."""
    if len(data) != array.index_bytes:
        raise damaged(path, "truncated: too short for the index of a shard")
    body = data[: len(data) - 4] if array.index_crc32c else data
    if array.index_crc32c and crc32c_bytes(body) != bytes(data[len(body) :]):
        raise damaged(path, "crc32c mismatch in the shard's index")
    index = np.frombuffer(body, dtype="<u8").reshape(-1, 2)
    offsets, lengths = index[:, 0], index[:, 1]
    present = (offsets != ABSENT) | (lengths != ABSENT)
    outside = present & ((lengths > file_bytes) | (offsets > file_bytes - np.minimum(lengths, file_bytes)))
    if outside.any():
        raise damaged(path, "the shard's index points outside the file")
    limit = 2 * array.chunk_bytes + 2**16  # no codec doubles its input, except for a few bytes
    if file_bytes > limit and (present & (lengths > limit)).any():
        longest = int(lengths[present].max())
        raise damaged(path, f"a zarr chunk must have at most {limit} bytes (got {longest})")
    return index


def entry_of(entries: ShardIndex, index: int, path: str) -> tuple[int, int]:
    """Offset and length of Zarr chunk `index` of an array in its file. Raise AbsentFileError if the shard lacks it."""
    offset, length = entries[index % len(entries)].tolist()
    if offset == ABSENT:
        raise AbsentFileError(f"{printable(path)}: {absent_chunk(index)}")
    return offset, length


def absent_chunk(index: int) -> str:
    """The error text for a Zarr chunk that its shard lacks."""
    return f"zarr chunk {index} is missing from the shard, and zarr would read zeros instead. {RESTORE}"
