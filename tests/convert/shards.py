"""Shards for tests: their writers, the record of one that was written, what it holds, a changed byte, a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from convert.driver.ledger import Ledger
from convert.planning.plan import Plan, ShardId, TextChunk
from convert.planning.plan_record import RecordFile
from convert.shards.intake_counts import IntakeCounts
from convert.shards.shard import PARTS, Part, ShardRecord
from convert.shards.shard_reader import DamagedShard, PartReader
from convert.shards.shard_store import shards_at
from convert.shards.shard_writer import ShardWriter
from convert.workdir.journal import FileJournal, Recorded
from flat_tokens.storage.layout import ArrayLayout


def writer_of(
    folder: Path, number: int = 0, largest_id: int = 999, token_bytes: int = 2, spares: Sequence[str] = ()
) -> ShardWriter:
    """An attempt at the shard of a text chunk."""
    return ShardWriter(
        folder,
        ShardId(number),
        np.dtype(f"u{token_bytes}"),
        largest_id,
        spares=list(spares),
        has_places=True,
    )


def is_intact(folder: Path, record: ShardRecord) -> bool:
    """Whether every part of a shard is there with every byte it was written with."""
    try:
        for part in map(record.part, PARTS):
            with PartReader(shards_at(folder), part) as reader:
                for block in part.blocks(0, part.item_count):
                    reader.block(block)
    except DamagedShard:
        return False
    return True


def items_of(folder: Path, part: Part, start: int, stop: int) -> list[int]:
    """Items [start, stop) of a part."""
    with PartReader(shards_at(folder), part.for_items(start, stop)) as reader:
        return [item for _, items in reader.items(start, stop) for item in items.tolist()]


def add_rows(shard: ShardWriter, split: int, rows: Sequence[Sequence[int]]) -> None:
    """Add whole documents to a split."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
    tokens = np.array([id_ for row in rows for id_ in row], dtype=np.uint32)
    places = np.arange(len(rows), dtype=np.uint64)
    shard.begin_source(0)
    shard.add(tokens, offsets, np.full(len(rows), split, dtype=np.bool_), places)


def record_of(shard: ShardWriter, chunk_index: int = 0, token_bytes: int = 2) -> ShardRecord:
    """Finish the shard; its record."""
    record = shard.finish()
    intake = IntakeCounts(record.train.documents + record.validation.documents)
    return replace(record, id=ShardId(chunk_index), token_bytes=token_bytes, is_last=True, intake=intake)


def change_part(folder: Path, record: ShardRecord, part: str, flip: int) -> None:
    """Flip a bit of byte number `flip` of a part, wherever it lies; twice is as before."""
    own = record.part(part)
    data = bytearray((folder / own.file).read_bytes())
    data[own.offset + flip] ^= 1
    (folder / own.file).write_bytes(data)


def shard_of(
    folder: Path, index: int, sequences: dict[str, list[list[int]]], token_bytes: int = 2
) -> ShardRecord:
    """A text chunk's only shard, with these sequences."""
    with writer_of(folder, index, 2**31 - 1, token_bytes) as shard:
        for place, split in enumerate(("train", "validation")):
            add_rows(shard, place, sequences[split])
        return record_of(shard, index, token_bytes)


class NoText(NamedTuple):
    """A plan of so many text chunks, whose sources are empty."""

    chunk_count: int
    chunk_bytes: int = 1
    total_bytes: int = 0
    sources: tuple[None, ...] = (None,)

    def chunk(self, index: int) -> TextChunk:
        return TextChunk(index, 0, 0)

    def blocks(self, chunk: TextChunk) -> Iterator[tuple[int, int]]:
        return iter(())


def ledger_of(chunk_count: int, layout: ArrayLayout) -> Ledger:
    """The ledger of a plan of so many text chunks."""
    return Ledger(cast(Plan, NoText(chunk_count)), layout, keeps_intakes=False, has_places=True)


def journal_of(partial: Path) -> FileJournal:
    """Return the journal of an unfinished run, which may have no plan yet."""
    journal = FileJournal(partial)
    if (partial / "plan.json").exists():
        journal.begin(RecordFile(partial / "plan.json").run)
    return journal


def records_of(recorded: Recorded) -> dict[ShardId, ShardRecord]:
    """All shards that a log speaks of."""
    found = {shard: recorded.shard(shard) for shard in recorded.shards}
    return {shard: record for shard, record in found.items() if record is not None}
