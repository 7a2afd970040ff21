"""Shards for tests: their writers, the record of one that was written, what it holds, a changed byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from convert.plan import ShardId
from convert.shards.shard import ShardRecord
from convert.shards.shard_reader import ShardReader
from convert.shards.shard_writer import ShardWriter


def writer_of(
    folder: Path, number: int = 0, largest_id: int = 999, token_bytes: int = 2, spare: str | None = None
) -> ShardWriter:
    """An attempt at the shard of a text chunk."""
    return ShardWriter(folder, ShardId(number), np.dtype(f"u{token_bytes}"), largest_id, spare=spare)


def ids_of(reader: ShardReader, split: str, start: int, stop: int) -> list[int]:
    """Ids [start, stop) by a reader of the whole shard."""
    own = ShardReader(reader._folder, reader._shape.for_slice(split, start, stop))
    with own:
        return [id_ for _, ids in own.ids(split, start, stop) for id_ in ids.tolist()]


def add_rows(shard: ShardWriter, split: int, rows: Sequence[Sequence[int]]) -> None:
    """Add whole documents to a split."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    tokens = np.array([id_ for row in rows for id_ in row], dtype=np.uint32)
    shard.add(tokens, offsets, np.full(len(rows), split, dtype=np.bool_))


def record_of(shard: ShardWriter, chunk_index: int = 0, token_bytes: int = 2) -> ShardRecord:
    """Finish the shard; its record."""
    part_digests, places, (train, validation) = shard.finish()
    return ShardRecord(
        ShardId(chunk_index),
        True,
        10,
        0,
        token_bytes,
        part_digests,
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
