"""Shards for tests: where they are written to, the record of one that was written, a part's bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from convert.plan import ShardId
from convert.shards.shard import PARTS, ShardRecord
from convert.shards.shard_writer import ShardWriter
from convert.shards.slots import Slots


def slots_of(number: int) -> Slots:
    """Slots that no other shard of a test has."""
    return Slots(tuple(f"{part}-{number}" for part in PARTS), f"small-{number}")


def add_rows(shard: ShardWriter, split: int, rows: Sequence[Sequence[int]]) -> None:
    """Add whole documents to a split."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    tokens = np.array([id_ for row in rows for id_ in row], dtype=np.uint32)
    shard.add(tokens, offsets, np.full(len(rows), split, dtype=np.bool_))


def record_of(shard: ShardWriter, chunk_index: int = 0, token_bytes: int = 2) -> ShardRecord:
    """Finish the shard; its record."""
    checksums, places, (train, validation) = shard.finish()
    return ShardRecord(
        ShardId(chunk_index),
        True,
        10,
        0,
        token_bytes,
        checksums,
        train,
        validation,
        b"\0" * 8,
        places=places,
    )


def change_part(folder: Path, record: ShardRecord, part: str, flip: int) -> None:
    """Flip a bit of byte number `flip` of a part, wherever it lies; twice is as before."""
    name, offset = record.shape.place(part)
    data = bytearray((folder / name).read_bytes())
    data[offset + flip] ^= 1
    (folder / name).write_bytes(data)
