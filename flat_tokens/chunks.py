"""From files to elements: the zarr chunks of an array, read without zarr, and shards, written without it.

A file of zarr format 2 is one zarr chunk. A shard of format 3 is its encoded zarr chunks one after the other
and an index: offset and length of each as two little-endian uint64, both 2^64 - 1 for a zarr chunk that is
not there, then the index's crc32c. Cost: one read a file or zarr chunk and the codec's work, where zarr adds
half a millisecond a read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.codecs import CodecChain, crc32c_bytes

ABSENT = 2**64 - 1
LARGEST_CHUNK_BYTES = (
    2**31
)  # what Blosc takes at once; more would be allocated on the word of a hostile metadata file


def pad(values: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """values, with zeros behind them up to `length`: zarr stores only whole zarr chunks. [1, 2], 3 -> [1, 2,
    0]."""
    if len(values) == length:
        return values
    padded = np.zeros(length, dtype=values.dtype)
    padded[: len(values)] = values
    return padded


def encode_shard(values: npt.NDArray[Any], chunk: int, chunks_per_shard: int, codecs: CodecChain) -> bytes:
    """The bytes of a shard: values are its elements, as many as there are; the last zarr chunk is padded
    with zeros, those beyond the array are absent, as zarr writes it."""
    index = np.full((chunks_per_shard, 2), ABSENT, dtype="<u8")
    parts = []
    offset = 0
    for chunk_index in range(-(-len(values) // chunk)):
        payload = codecs.encode(pad(values[chunk_index * chunk : (chunk_index + 1) * chunk], chunk))
        index[chunk_index] = offset, len(payload)
        offset += len(payload)
        parts.append(payload)
    index_bytes = index.tobytes()
    return b"".join([*parts, index_bytes, crc32c_bytes(index_bytes)])
