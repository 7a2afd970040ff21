"""Runs of en.txt that stop halfway, for tests of what the next one makes of what they leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import convert.shards.merge_task
from convert import ConvertOptions
from convert import convert as run_conversion
from convert.encode.encode_task import ChunkResult, encode_chunk
from convert.errors import BadInput
from convert.planning.plan import ShardId, TextChunk
from convert.planning.plan_record import RecordFile
from convert.shards.merge_task import merge
from convert.shards.shard import ShardRecord
from convert.shards.write_units import MergeTask
from convert.shards.written_files import WrittenFiles
from convert.workdir.journal import Journal
from tokenmill.engines.inline_engine import InlineEngine


def options(**more: Any) -> ConvertOptions:
    """For a conversion of en.txt to out in 19 text chunks."""
    base: dict[str, Any] = {
        "inputs": ["en.txt"],
        "tokenizer": "tok.json",
        "output": "out",
        "progress": "none",
    }
    return ConvertOptions(**{**base, "text_chunk_bytes": 200, "workers": 2, **more})


def encode_or_fail(chunk: TextChunk, *more: Any, **named: Any) -> ChunkResult:
    """A worker that meets a bad record in text chunk 5."""
    if chunk.index == 5:
        raise BadInput("no more")
    return encode_chunk(chunk, *more, **named)


def merge_fails(*_: object) -> None:
    raise BadInput("no merge")


def leave_partial(monkeypatch: pytest.MonkeyPatch, merged_count: int = 0, **more: Any) -> list[MergeTask]:
    """Leave out.partial with so many finished merge tasks, and return them. Unless a test makes them shorter, the first
    one starts when all text chunks are encoded."""
    merged: list[MergeTask] = []

    def merge_a_few(task: MergeTask, *more: Any) -> list[WrittenFiles]:
        if len(merged) == merged_count:
            merge_fails()
        merged.append(task)
        return merge(task, *more)

    with monkeypatch.context() as patch:
        patch.setattr(convert.shards.merge_task, "merge", merge_a_few)
        with pytest.raises(BadInput):
            run_conversion(options(**more), InlineEngine())
    assert len(merged) == merged_count
    return merged


def forget(partial: Path, chunk_index: int) -> None:
    """Damage the journal's line about a shard."""
    path = partial / "journal"
    begin = f'"id": [{chunk_index}, '.encode()
    assert begin in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(begin, begin.upper()))


def journal_of(partial: Path) -> Journal:
    """The journal of an unfinished run, without entries before the run has a plan."""
    journal = Journal(partial)
    plan = partial / "plan.json"
    journal.begin(RecordFile(plan).run if plan.exists() else "0")
    return journal


def records_of(partial: Path) -> dict[ShardId, ShardRecord]:
    """The shards in the journal of an unfinished run."""
    recorded = journal_of(partial).recorded()
    found = {shard: recorded.shard(shard) for shard in recorded.shards}
    return {shard: record for shard, record in found.items() if record is not None}


def flip_bit(path: Path, place: int) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
