"""Shards for tests: the record of one that was written."""

from __future__ import annotations

from convert.shards.shard import ShardRecord
from convert.shards.shard_writer import ShardWriter


def record_of(shard: ShardWriter, chunk_index: int = 0, token_bytes: int = 2) -> ShardRecord:
    """Finish the shard; its record."""
    checksums, (train, validation) = shard.finish()
    return ShardRecord(
        chunk_index, 10, 0, token_bytes, checksums, train, validation, ((0, chunk_index, "ab"),)
    )
