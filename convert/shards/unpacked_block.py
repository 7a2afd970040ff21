"""Text of a large compressed file, unpacked by one task so that several can encode it.

    <chunk>.<number>.block   the text of shard `number`
    <chunk>.<number>.json    an `UnpackedShard` once the block is complete, then the record of the shard; the block is
                             deleted after that

A repeated task skips finished blocks.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from convert.planning.plan import ShardId
from convert.shards.shard import ShardRecord, shard_name
from convert.shards.shard_store import ShardStore
from tokenmill.stores import StoreNotFound


class UnpackedShard(NamedTuple):
    """A complete block.

    start: offset of its first byte in the unpacked text.
    size: bytes of text, which the file may continue after.
    first_line: number of its first line, from 0.
    is_last: whether the text of the compressed file ends with it.
    damage: the error that ended the text, or "".
    """

    start: int
    size: int
    first_line: int
    is_last: bool
    damage: str


def block_name(shard: ShardId) -> str:
    """Return the name of the file with the text of a shard."""
    return f"{shard_name(shard)}.block"


def is_unpacked(shards: ShardStore, shard: ShardId) -> bool:
    """Return whether a shard is unpacked or encoded."""
    return shards.size_of(_state_name(shard)) is not None


def read_state(shards: ShardStore, shard: ShardId) -> UnpackedShard | ShardRecord | None:
    """Return the state of a shard, None before it is unpacked."""
    try:
        state = json.loads(bytes(shards.store.read(_state_name(shard))))
    except StoreNotFound:
        return None
    return UnpackedShard(*state) if isinstance(state, list) else ShardRecord.from_json(state)


def write_state(shards: ShardStore, shard: ShardId, state: UnpackedShard | ShardRecord) -> None:
    """Change the state of a shard."""
    value = state.as_json() if isinstance(state, ShardRecord) else state
    shards.store.put(_state_name(shard), json.dumps(value).encode())


def _state_name(shard: ShardId) -> str:
    return f"{shard_name(shard)}.json"
