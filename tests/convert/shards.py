"""Shards for tests: where they are written to, the record of one that was written, a part's bytes."""

from __future__ import annotations

from pathlib import Path

from convert.shards.shard import PARTS, ShardRecord
from convert.shards.shard_writer import ShardWriter
from convert.shards.slots import Slots


def slots_of(number: int) -> Slots:
    """Slots that no other shard of a test has."""
    return Slots(tuple(f"{part}-{number}" for part in PARTS), f"small-{number}")


def record_of(shard: ShardWriter, chunk_index: int = 0, token_bytes: int = 2) -> ShardRecord:
    """Finish the shard; its record."""
    checksums, places, (train, validation) = shard.finish()
    return ShardRecord(
        chunk_index,
        10,
        0,
        token_bytes,
        checksums,
        train,
        validation,
        ((0, chunk_index, "ab"),),
        places=places,
    )


def change_part(folder: Path, record: ShardRecord, part: str, flip: int) -> None:
    """Flip a bit of byte number `flip` of a part, wherever it lies; twice is as before."""
    name, offset = record.shape.place(part)
    data = bytearray((folder / name).read_bytes())
    data[offset + flip] ^= 1
    (folder / name).write_bytes(data)
