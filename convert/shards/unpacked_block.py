"""Text of a large compressed file, unpacked by one task so that several can encode it.

    <chunk>.<number>.block    the text of shard `number`, then what `BlockEnd` says, as JSON, and its length in 8 bytes
    <chunk>.<number>.record   the record of the shard, once it is encoded; the block is deleted then

One of the two exists for each shard, so a repeated task finds out which blocks are done.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import NamedTuple

from convert.planning.plan import ShardId
from convert.shards.shard import ShardRecord
from convert.shards.shard_store import ShardStore
from tokenmill.stores import RandomFile, StoreNotFound
from tokenmill.stores.files import read_at

_LENGTH_BYTES = 8


class BlockEnd(NamedTuple):
    """The end of a block.

    start: offset of its first byte in the unpacked text.
    first_line: number of its first line, from 0.
    is_last: whether the text of the file ends with it.
    damage: the error that ended the text, or "".
    """

    start: int
    first_line: int
    is_last: bool
    damage: str

    def to_bytes(self) -> bytes:
        """Return the bytes after the text."""
        data = json.dumps(self).encode()
        return data + len(data).to_bytes(_LENGTH_BYTES, "big")


def block_name(shard: ShardId) -> str:
    """Return the name of the file with the text of a shard."""
    return f"{shard.chunk_index}.{shard.number}.block"


def record_name(shard: ShardId) -> str:
    """Return the name of the file with the record of a shard."""
    return f"{shard.chunk_index}.{shard.number}.record"


def is_unpacked(shards: ShardStore, shard: ShardId) -> bool:
    """Return whether the block or the record of a shard exists."""
    # In this order: a block is deleted after its record exists.
    return any(shards.size_of(name) is not None for name in (block_name(shard), record_name(shard)))


def read_record(shards: ShardStore, shard: ShardId) -> ShardRecord | None:
    """Return the record of a shard that is encoded, else None."""
    with suppress(StoreNotFound):
        return ShardRecord.from_json(json.loads(shards.read(record_name(shard))))
    return None


def read_end(file: RandomFile) -> tuple[int, BlockEnd]:
    """Return the bytes of the text of a block, and its end."""
    stop = file.size - _LENGTH_BYTES
    start = stop - int.from_bytes(read_at(file, stop, _LENGTH_BYTES), "big")
    return start, BlockEnd(*json.loads(read_at(file, start, stop - start)))
