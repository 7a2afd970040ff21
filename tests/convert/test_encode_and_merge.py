"""What the parent does with results: it refuses a shard that is not the one it asked for, and syncs what it noted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import tree
from shards import journal_of, records_of
from stopped_runs import leave_partial, options

import convert.driver.encode_and_merge
import convert.encode.worker
from convert import convert as run_conversion
from convert.encode.worker import ChunkResult, encode_chunk
from convert.errors import BadInput, DataLost
from convert.planning.plan import ShardId, TextChunk
from convert.shards.shard import ShardRecord
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.stores.durability import Syncer

Change = Callable[[ShardRecord], ShardRecord]


def changed_in_chunk_4(change: Change) -> Callable[..., ChunkResult]:
    def encode(chunk: TextChunk, *more: Any) -> ChunkResult:
        result = encode_chunk(chunk, *more)
        if chunk.index != 4:
            return result
        return replace(result, records=tuple(map(change, result.records)))

    return encode


def longer(record: ShardRecord) -> ShardRecord:
    return replace(record, text_bytes=record.text_bytes + 1)


def other_ids(record: ShardRecord) -> ShardRecord:
    return replace(record, part_digests=tuple(digests[::-1] for digests in record.part_digests))


def test_a_shard_of_other_text_than_its_chunk_has_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert.encode.worker, "encode_chunk", changed_in_chunk_4(longer))
    with pytest.raises(BadInput, match=r"chunk 4.*en\.txt"):
        run_conversion(options(), InlineEngine())


def test_a_shard_made_again_with_other_ids_than_an_earlier_run_recorded_is_refused(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_partial(monkeypatch)
    shards = here / "out.partial/shards"
    (shards / records_of(journal_of(here / "out.partial").recorded())[ShardId(4)].places[0][0]).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", changed_in_chunk_4(other_ids))
        with pytest.raises(DataLost, match="chunk 4"):
            run_conversion(options(), InlineEngine())
    run_conversion(options(), InlineEngine())
    assert tree(here / "out") == clean


@pytest.mark.parametrize(("seconds", "least", "most"), [(0.0, 1, 1), (0.3, 2, 4), (5.0, 5, 20)])
def test_the_journal_is_synced_each_second_and_stays_if_that_fails(
    seconds: float, least: int, most: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0

    class Clock:
        @staticmethod
        def monotonic() -> float:
            nonlocal now
            now += seconds
            return now

    synced: list[bool] = []
    add = Syncer.add

    def spy(syncer: Syncer, paths: Iterable[str | Path], stays: bool = False) -> None:
        listed = list(paths)
        synced.extend(stays for path in listed if str(path).endswith("out.partial/journal"))
        add(syncer, listed, stays)

    monkeypatch.setattr(convert.driver.encode_and_merge, "time", Clock)
    monkeypatch.setattr(Syncer, "add", spy)
    run_conversion(options(), InlineEngine())
    assert least <= len(synced) <= most
    assert all(synced)
