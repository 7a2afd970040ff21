"""Runs of en.txt that stop halfway, for tests of what the next one makes of what they leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import convert.encode.worker
from convert import ConvertOptions
from convert import convert as run_conversion
from convert.encode.worker import ChunkResult, encode_chunk, merge_run
from convert.errors import BadInput
from convert.planning.plan import TextChunk
from convert.shards.runs import Run
from convert.shards.shard_reader import Damage
from convert.shards.write_run import WrittenFile
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


def encode_or_fail(chunk: TextChunk, *more: Any) -> ChunkResult:
    """A worker that meets a bad record in text chunk 5."""
    if chunk.index == 5:
        raise BadInput("no more")
    return encode_chunk(chunk, *more)


def merge_fails(*_: object) -> None:
    raise BadInput("no merge")


def leave_partial(monkeypatch: pytest.MonkeyPatch, merged_runs: int = 0, **more: Any) -> list[Run]:
    """Leave out.partial as it is when so many runs are merged, and return them. Runs are long: unless a test makes them
    shorter, all text chunks are encoded before the first."""
    merged: list[Run] = []

    def merge_a_few(run: Run, *more: Any) -> list[WrittenFile] | Damage:
        if len(merged) == merged_runs:
            merge_fails()
        merged.append(run)
        return merge_run(run, *more)

    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "merge_run", merge_a_few)
        with pytest.raises(BadInput):
            run_conversion(options(**more), InlineEngine())
    assert len(merged) == merged_runs
    return merged


def forget(partial: Path, chunk_index: int) -> None:
    """Damage the journal's line about a shard."""
    path = partial / "journal"
    begin = f'"id": [{chunk_index}, '.encode()
    assert begin in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(begin, begin.upper()))
