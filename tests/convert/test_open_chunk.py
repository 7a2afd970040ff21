"""Text chunks that give several shards: compressed files and Parquet, stopped anywhere, by whatever runs the tasks."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from input_kinds import KINDS, compressed, write_kind
from naive_conversion import END, Naive, expected_dataset, make_documents, read_dataset, tree
from shards import change_part, journal_of, records_of

import convert.encode.worker
from convert import ConvertOptions, Summary
from convert import convert as run_conversion
from convert.encode.open_chunk import OpenChunk
from convert.encode.worker import ChunkResult, encode_chunk
from convert.errors import BadInput, Refused
from convert.planning.plan import ShardId, TextChunk
from convert.shards.shard import PARTS, ShardRecord
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.process_engine import ProcessEngine

PACKED = [kind for kind in KINDS if kind not in ("txt.none", "jsonl.none")]


class PlainExecutor(Executor):
    """One that keeps nothing together, as the standard pools are."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return InlineEngine().submit(fn, *args, **kwargs)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of 500 bytes of text, with parts in files of their own, and short runs."""
    monkeypatch.setattr("convert.planning.plan.LEAST_SHARD_BYTES", 500)
    for module in ("arrow_texts", "read_parquet"):
        monkeypatch.setattr(f"tokenmill.inputs.{module}.BATCH_BYTES", 300)
    monkeypatch.setattr("convert.shards.shard_writer.INLINE_BYTES", 0)
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", 50)
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", (128, 128))


def run(here: Path, output: str, executor: Any = None, **more: Any) -> Summary:
    """Convert all that lies in `in`."""
    more = {"validation_fraction": 0.3, "chunk_tokens": 64, "text_chunk_bytes": 500, "workers": 2, **more}
    options = ConvertOptions(["in"], "tok.json", output, progress="none", **more)
    return run_conversion(options, executor or InlineEngine())


def processes(workers: int) -> Any:
    return ProcessEngine(workers, "fork")


def documents_of(seed: int) -> list[str]:
    """Some 8 kB, with one document longer than several shards."""
    documents = [*make_documents(60, seed=seed), "the end"]
    return [*documents[:20], "".join(make_documents(60, seed=seed + 1)).replace(END, ""), *documents[20:]]


def put(here: Path, kind: str, documents: list[str], members: int = 3) -> Path:
    (here / "in").mkdir(exist_ok=True)
    return write_kind(here / "in" / "input", documents, kind, members=members)


@pytest.mark.parametrize("kind", PACKED)
def test_several_shards_hold_the_naive_conversion(
    kind: str, here: Path, naive: Naive, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = documents_of(3)
    put(here, kind, documents)
    is_text = kind.startswith("txt")
    expected = naive.convert_documents([d.encode() for d in documents], is_text, fraction=0.3)
    first: dict[str, bytes] = {}
    smallest = {"tar.none": 700, "tar.xz": 97}.get(kind, 7)  # an archive is mostly padding
    for shard_bytes, make in [
        (smallest, InlineEngine()),
        (500, InlineEngine()),
        (500, PlainExecutor()),
        (500, processes(1)),
        (700, processes(2)),
        (1500, processes(3)),
        (1 << 20, InlineEngine()),
    ]:
        monkeypatch.setattr("convert.planning.plan.LEAST_SHARD_BYTES", shard_bytes)
        output = f"out-{shard_bytes}-{len(list(here.glob('out*')))}"
        summary = run(here, output, make, text_chunk_bytes=min(shard_bytes, 1 << 16))
        assert read_dataset(here / output) == expected_dataset(expected)
        assert (summary.shards > summary.text_chunks) == (shard_bytes < 1 << 20)
        assert summary.documents == summary.intake.records == len(documents)
        first = first or tree(here / output)
        assert tree(here / output) == first


class StopAt:
    """encode_chunk, but for the `nth` call, which fails; calls count."""

    def __init__(self, nth: int) -> None:
        self.nth, self.calls = nth, 0

    def __call__(self, *arguments: Any) -> ChunkResult:
        self.calls += 1
        if self.calls == self.nth:
            raise BadInput("no more")
        return encode_chunk(*arguments)


def recorded_shards(partial: Path) -> dict[ShardId, ShardRecord]:
    return records_of(journal_of(partial).recorded())


@pytest.mark.parametrize("kind", ["txt.gz", "jsonl.zst", "parquet.none"])
def test_stopped_at_any_shard_the_next_run_encodes_the_others(
    kind: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(here, kind, documents_of(5))
    shards = run(here, "clean").shards
    assert shards > 5
    executors = [InlineEngine(), PlainExecutor()]
    for nth in range(1, shards + 1):
        encode = StopAt(nth)
        with monkeypatch.context() as patch:
            patch.setattr(convert.encode.worker, "encode_chunk", encode)
            with pytest.raises(BadInput):
                run(here, f"out-{nth}")
        recorded = recorded_shards(here / f"out-{nth}.partial")
        assert len(recorded) < shards
        summary = run(here, f"out-{nth}", executors[nth % 2], workers=1)
        assert (summary.reused_shards, summary.shards) == (len(recorded), shards)
        assert tree(here / f"out-{nth}") == tree(here / "clean")


def test_undisturbed_nothing_is_read_twice(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        documents = documents_of(number)
        write_kind(put(here, "txt.none", documents).with_name(f"{number}"), documents, "jsonl.gz")
    run(here, "clean", workers=1)

    def fail(_: OpenChunk) -> None:
        raise AssertionError("a shard is passed over")

    monkeypatch.setattr(OpenChunk, "pass_over", fail)
    for workers in (1, 2, 3):
        run(here, f"out-{workers}", processes(workers), workers=workers)
        assert tree(here / f"out-{workers}") == tree(here / "clean")


def die_once(chunk: TextChunk, *more: Any) -> ChunkResult:
    """A worker that is killed at the fourth shard of a chunk, but not when it is tried once more."""
    number = more[3]
    if number == 3 and not Path("died").exists():
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return encode_chunk(chunk, *more)


def test_a_fresh_worker_goes_on_in_the_middle(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(here, "txt.gz", documents_of(7))
    run(here, "clean")
    monkeypatch.setattr(convert.encode.worker, "encode_chunk", die_once)
    summary = run(here, "out", processes(2))
    assert (here / "died").exists()
    assert summary.reused_shards == 0
    assert tree(here / "out") == tree(here / "clean")


def leave_partial(here: Path, monkeypatch: pytest.MonkeyPatch, nth: int, **more: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", StopAt(nth))
        with pytest.raises(BadInput):
            run(here, "out", **more)


def test_a_shard_in_the_middle_that_is_damaged_or_not_recorded(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(here, "txt.gz", documents_of(7) * 2)
    monkeypatch.setattr("convert.shards.runs.RUN_TOKENS", (1 << 20, 1 << 20))
    shards = run(here, "clean").shards
    for name in ("damaged", "forgotten"):
        leave_partial(here, monkeypatch, 11)
        folder = here / "out.partial/shards"
        recorded = recorded_shards(here / "out.partial")
        first = [shard for shard in recorded if shard.chunk_index == 0]
        assert first == [ShardId(0, number) for number in range(len(first))]
        assert len(first) > 3
        assert not recorded[first[-1]].is_last
        reused = len(recorded) - 1
        if name == "damaged":
            part = next(part for part in PARTS if recorded[ShardId(0, 2)].part(part).size)
            change_part(folder, recorded[ShardId(0, 2)], part, 0)
        else:
            path = here / "out.partial/journal"
            path.write_bytes(path.read_bytes().replace(b'"id": [0, 2]', b'"id": [0, 9]'))
        summary = run(here, "out")
        assert (summary.reused_shards, summary.shards) == (reused, shards)
        assert tree(here / "out") == tree(here / "clean")
        (here / "out").rename(here / name)


def test_quarantined_records_keep_their_lines(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(4)
    lines = [json.dumps({"text": document}) for document in documents_of(9)]
    for number in range(9):
        lines.insert(rng.randrange(len(lines)), f"[{number}]")
    (here / "in").mkdir()
    data = "\n".join(lines).encode()
    (here / "in/a.jsonl.gz").write_bytes(compressed(data, "gz"))
    (here / "in/b.jsonl").write_bytes(data)
    more = {"on_error": "quarantine", "max_errors": 18}
    summary = run(here, "clean", **more)
    assert summary.shards > summary.text_chunks + 5
    entries = [json.loads(line) for line in (here / "clean/quarantine.jsonl").read_text().splitlines()]
    assert [entry["record"] for entry in entries] == [line for line in lines if line[0] == "["] * 2
    assert [entry["line"] for entry in entries] == [
        n for n, line in enumerate(lines, 1) if line[0] == "["
    ] * 2
    for nth in (3, 6, 9, 12):
        leave_partial(here, monkeypatch, nth, **more)
        run(here, "out", PlainExecutor(), **more)
        assert tree(here / "out") == tree(here / "clean")
        (here / "out").rename(here / f"{nth}")
    with pytest.raises(BadInput):
        run(here, "few", **{**more, "max_errors": 17})


def test_shards_of_another_size_are_not_taken_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(here, "txt.gz", documents_of(7))
    leave_partial(here, monkeypatch, 4)
    monkeypatch.setattr("convert.planning.plan.LEAST_SHARD_BYTES", 600)
    with pytest.raises(Refused, match="--text-chunk-bytes"):
        run(here, "out")


def test_what_is_shown_grows_to_the_work_of_the_chunk(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(here, "txt.gz", documents_of(7), members=1)
    done: list[int] = []

    def encode(*arguments: Any) -> ChunkResult:
        result = encode_chunk(*arguments)
        done.append(result.done_bytes)
        return result

    monkeypatch.setattr(convert.encode.worker, "encode_chunk", encode)
    run(here, "out", text_chunk_bytes=1 << 16)
    assert done == sorted(done)
    assert done[-1] == path.stat().st_size


class ManyWorkers(InlineEngine):
    """Eight, as far as anybody can tell; what they return comes in another order than it was asked for."""

    @property
    def worker_count(self) -> int:
        return 8


@pytest.mark.parametrize("kind", ["txt.gz", "jsonl.zst"])
@pytest.mark.parametrize("files", [1, 2])
def test_a_compressed_file_is_read_by_several_lanes(
    kind: str, files: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(here, kind, documents_of(0) * 2)
    for number in range(1, files):
        write_kind(first.with_name(f"{number}"), documents_of(number) * 2, kind)
    run(here, "clean")
    lanes: set[tuple[int, int, int]] = set()

    def encode(chunk: TextChunk, *more: Any) -> ChunkResult:
        number, step = more[3], more[4]
        lanes.add((chunk.index, number % step, step))
        return encode_chunk(chunk, *more)

    with monkeypatch.context() as patch:
        patch.setattr(convert.encode.worker, "encode_chunk", encode)
        run(here, "out", ManyWorkers())
    assert tree(here / "out") == tree(here / "clean")
    compressed = {chunk for chunk, _, step in lanes if step > 1}
    assert compressed
    assert {step for _, _, step in lanes} - {1} == {4 // files}
    for chunk in compressed:
        assert {lane for index, lane, _ in lanes if index == chunk} == set(range(4 // files))


def test_lanes_that_are_stopped_leave_gaps_that_the_next_run_fills(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(here, "txt.gz", documents_of(5) * 2)
    shards = run(here, "clean").shards
    for nth in range(2, shards, 3):
        with monkeypatch.context() as patch:
            patch.setattr(convert.encode.worker, "encode_chunk", StopAt(nth))
            with pytest.raises(BadInput):
                run(here, f"out-{nth}", ManyWorkers())
        recorded = recorded_shards(here / f"out-{nth}.partial")
        summary = run(here, f"out-{nth}", InlineEngine() if nth % 2 else ManyWorkers())
        assert (summary.reused_shards, summary.shards) == (len(recorded), shards)
        assert tree(here / f"out-{nth}") == tree(here / "clean")
