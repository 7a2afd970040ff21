"""What is left when a worker, a stage or a file fails, and that the next run makes the same dataset of it."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from naive_conversion import tree
from stopped_runs import encode_or_fail, merge_fails, options

import convert.encode.encode_task
import convert.shards.merge_task
from convert import convert as run_conversion
from convert.encode.encode_task import ChunkResult, encode_chunk
from convert.errors import BadInput, BrokenInvariant, Refused, StorageError, WorkerLost
from convert.planning.plan import TextChunk
from convert.planning.plan_record import PlanRecord
from convert.shards.merge_task import merge
from convert.shards.write_units import MergeTask
from convert.shards.written_files import WrittenFiles
from convert.workdir.store import open_workdir
from tokenmill.cli.failures import exit_code_of
from tokenmill.engines.inline_engine import InlineEngine


def encode_or_die(chunk: TextChunk, *more: Any, **named: Any) -> ChunkResult:
    if chunk.index == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return encode_chunk(chunk, *more, **named)


def interrupt(chunk: TextChunk, *more: Any, **named: Any) -> ChunkResult:
    if chunk.index == 5:
        raise KeyboardInterrupt
    return encode_chunk(chunk, *more, **named)


def test_a_killed_worker_is_named_with_its_text_chunk_and_the_next_run_goes_on(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert.encode.encode_task, "encode_chunk", encode_or_die)
    with pytest.raises(WorkerLost, match=r"chunk 5.*en\.txt"):
        run_conversion(options(start_method="fork"))
    assert not (here / "out").exists()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    summary = run_conversion(options(), InlineEngine())
    assert summary.reused_shards > 0
    assert tree(here / "out") == clean
    assert not (here / "out.partial").exists()


def test_the_standard_pool_can_stand_in_and_its_losses_are_told_too(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        run_conversion(options(), pool)
    assert tree(here / "out") == clean
    monkeypatch.setattr(convert.encode.encode_task, "encode_chunk", encode_or_die)
    with (
        ProcessPoolExecutor(2, get_context("fork")) as pool,
        pytest.raises(WorkerLost),
    ):
        run_conversion(options(output="other"), pool)


@pytest.mark.parametrize("kind", ["encode", "merge", "interrupt"])
def test_after_any_stage_fails_the_same_call_goes_on(
    kind: str, here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name, broken, error = {
        "encode": (convert.encode.encode_task, "encode_chunk", encode_or_fail, BadInput),
        "merge": (convert.shards.merge_task, "merge", merge_fails, BadInput),
        "interrupt": (convert.encode.encode_task, "encode_chunk", interrupt, KeyboardInterrupt),
    }[kind]
    with monkeypatch.context() as patch:
        patch.setattr(module, name, broken)
        for _ in range(2):  # twice: failing again loses nothing
            with pytest.raises(error):
                run_conversion(options(), InlineEngine())
    assert sorted(path.name for path in here.glob("out*")) == ["out.partial"]
    summary = run_conversion(options(workers=1), InlineEngine())
    # The chunks before the broken one are done, and some behind it, which were already on their way.
    lowest, highest = {"merge": (summary.text_chunks,) * 2, "interrupt": (5, 5)}.get(
        kind, (5, summary.text_chunks - 1)
    )
    assert lowest <= summary.reused_shards <= highest
    assert tree(here / "out") == clean


def test_two_runs_on_one_output(here: Path) -> None:
    first = open_workdir(options())
    assert first.open(PlanRecord({"a": 1})) is False
    with pytest.raises(Refused, match=f"{os.getpid()}"):
        run_conversion(options(), InlineEngine())
    first.close()
    run_conversion(options(), InlineEngine())
    assert (here / "out").exists()


def lose_a_document(chunk: TextChunk, *more: Any, **named: Any) -> ChunkResult:
    result = encode_chunk(chunk, *more, **named)
    if chunk.index != 4:
        return result
    (record,) = result.records
    train = record.train._replace(documents=record.train.documents + 1)
    return replace(result, records=(replace(record, train=train),))


def test_a_lost_document_is_never_published(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert.encode.encode_task, "encode_chunk", lose_a_document)
    with pytest.raises(BrokenInvariant, match="chunk 4") as caught:
        run_conversion(options(), InlineEngine())
    assert not (here / "out").exists()
    assert exit_code_of(caught.value) is None  # a command shows its traceback


def merge_and_spoil(task: MergeTask, *more: Any) -> list[WrittenFiles]:
    written = merge(task, *more)
    if task.split == "train" and task.array == "tokens":
        path = Path("out.partial/dataset") / next(written[0].records()).path
        data = path.read_bytes()
        path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    return written


def test_a_byte_that_the_disk_changed_is_found_before_publishing(
    here: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(convert.shards.merge_task, "merge", merge_and_spoil)
        with pytest.raises(StorageError, match="train/encoded_tokens/0"):
            run_conversion(options(), InlineEngine())
    assert not (here / "out").exists()
    run_conversion(options(), InlineEngine())
    assert tree(here / "out") == clean
