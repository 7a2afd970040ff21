"""Reading shards back. Every block is compared with the digest in the record of its shard before it is used."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from convert.errors import DataLost, naming
from convert.shards.shard import BLOCK_BYTES, DIGEST_BYTES, ShardFile, ShardSlice, digest_of
from convert.shards.shard_store import ShardStore
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.stores import StoreNotFound
from tokenmill.stores.files import fill_at


def read_slice(shards: ShardStore, own: ShardSlice) -> Iterator[NDArray[np.uint8]]:
    """Yield the bytes of a slice, a block at a time, each valid until the next.

    DataLost if the file is missing or damaged. It is deleted, so that a later run encodes the shard again.
    """
    name, size, digests = own.file
    path = shards.where(name)
    last_block = -(-own.stop // BLOCK_BYTES)
    try:
        with naming(path), shards.open(name, size) as file:
            file.expect(own.first_block * BLOCK_BYTES, min(last_block * BLOCK_BYTES, size))
            for block in range(own.first_block, last_block):
                start = block * BLOCK_BYTES
                data = thread_buffer("shard block", min(BLOCK_BYTES, size - start), np.uint8)
                digest = digests[(block - own.first_block) * DIGEST_BYTES :][:DIGEST_BYTES]
                if fill_at(file, start, data.data) < len(data) or digest_of(data.data) != digest:
                    shards.delete([name])
                    raise DataLost(f"{path}: checksum mismatch. Run the same command again.")
                yield data[max(own.start - start, 0) : own.stop - start]
    except StoreNotFound:
        raise DataLost(f"{path}: missing. Run the same command again.") from None


def is_intact(shards: ShardStore, file: ShardFile, with_content: bool) -> bool:
    """Return whether a file exists with its size and, if asked, its content."""
    if shards.size_of(file.name) != file.size:
        return False
    if with_content:
        try:
            for _ in read_slice(shards, ShardSlice(file, 0, file.size, 0, 0)):
                pass
        except DataLost:
            return False
    return True
