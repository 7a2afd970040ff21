"""Large compressed files: unpacked into blocks, they give the dataset that one task gives, however the run goes."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from input_kinds import compressed, write_kind
from naive_conversion import END, make_documents, tree
from stopped_runs import records_of

import convert.encode.encode_task
from convert import ConvertOptions, Summary
from convert import convert as run_conversion
from convert.encode.encode_task import encode_block, unpack_chunk
from convert.errors import BadInput
from tokenmill.engines.engine import BorrowedEngine
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.process_engine import ProcessEngine


class Tasks(InlineEngine):
    """Several workers as far as the driver knows. before: called with each function before it runs."""

    def __init__(self, before: Callable[[str], None] = lambda name: None) -> None:
        self.names: list[str] = []
        self._before = before

    @property
    def worker_count(self) -> int:
        return 3

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.names.append(getattr(getattr(fn, "func", fn), "__name__", ""))
        self._before(self.names[-1])
        return super().submit(fn, *args, **kwargs)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convert.planning.plan.LARGE_FILE_BYTES", 400)
    monkeypatch.setattr("convert.planning.plan.MIN_GIVEN_SHARD_BYTES", 500)
    monkeypatch.setattr("convert.shards.write_units.MERGE_TOKENS", (128, 128))


def corpus(here: Path, kind: str) -> None:
    """A large compressed file between two small files, with bad records and a document of several blocks."""
    documents = make_documents(120, seed=3)
    if kind.startswith("txt"):
        documents[20] = "".join(make_documents(80, seed=4)).replace(END, "")
    folder = here / "in"
    folder.mkdir()
    write_kind(folder / "a", make_documents(5, seed=5), "txt.none")
    path = write_kind(folder / "b", documents, kind)
    if kind.startswith("jsonl"):
        lines = [json.dumps({"text": text}) for text in documents]
        for number in range(9):
            lines.insert(random.Random(number).randrange(len(lines)), f"[{number}]")
        path.write_bytes(compressed("\n".join(lines).encode(), kind.partition(".")[2]))
    write_kind(folder / "c", make_documents(5, seed=6), "jsonl.none")


def run(output: str, executor: Any, **more: Any) -> Summary:
    base: dict[str, Any] = {
        "validation_fraction": 0.3,
        "chunk_tokens": 64,
        "text_chunk_bytes": 500,
        "workers": 3,
    }
    base |= {"on_error": "quarantine", "progress": "none", **more}
    return run_conversion(ConvertOptions(["in/*"], "tok.json", output, **base), executor)


@pytest.fixture(params=["txt.gz", "jsonl.zst", "jsonl.gz"])
def clean(request: pytest.FixtureRequest, here: Path) -> dict[str, bytes]:
    """The dataset by one worker, which does not unpack."""
    corpus(here, request.param)
    run("clean", InlineEngine(), workers=1)
    return tree(here / "clean")


def test_the_dataset_is_the_same(
    clean: dict[str, bytes], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Tasks()
    run("inline", engine)
    assert engine.names.count("unpack_chunk") == 1
    assert engine.names.count("encode_block") > 8
    assert tree(here / "inline") == clean
    monkeypatch.setattr("convert.encode.encode_task.MAX_BLOCKS", 2)
    with ThreadPoolExecutor(3) as pool:
        run("threads", BorrowedEngine(pool, 3))
    run("processes", ProcessEngine(2, "fork"), workers=2)
    assert tree(here / "threads") == tree(here / "processes") == clean


@pytest.mark.parametrize("stop", range(1, 24, 3))
def test_a_stopped_run_resumes(stop: int, clean: dict[str, bytes], here: Path) -> None:
    def fail(name: str) -> None:
        if len(engine.names) == stop:
            raise BadInput("no more")

    engine = Tasks(fail)
    with pytest.raises(BadInput):
        run("out", engine)
    recorded = len(records_of(here / "out.partial"))
    # With one worker the rest of the file is one task, with more it is unpacked again.
    summary = run("out", InlineEngine() if stop % 2 else Tasks())
    assert summary.reused_shards == recorded
    assert tree(here / "out") == clean


def test_tasks_that_are_repeated_find_out_what_is_left(
    clean: dict[str, bytes], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack_again(*arguments: Any, **named: Any) -> int:
        count = unpack_chunk(*arguments, **named)
        assert unpack_chunk(*arguments, **named) == count
        return count

    def encode_again(*arguments: Any, **named: Any) -> Any:
        first = encode_block(*arguments, **named)
        assert encode_block(*arguments, **named).records == first.records
        return first

    monkeypatch.setattr(convert.encode.encode_task, "unpack_chunk", unpack_again)
    monkeypatch.setattr(convert.encode.encode_task, "encode_block", encode_again)
    monkeypatch.setattr("convert.encode.encode_task.MAX_BLOCKS", 5)
    run("out", Tasks())
    assert tree(here / "out") == clean
    assert not (here / "out.partial").exists()


def test_a_damaged_file_is_read_up_to_the_damage(here: Path) -> None:
    corpus(here, "txt.gz")
    path = next((here / "in").glob("b*"))
    path.write_bytes(path.read_bytes()[:-500])
    alone, shared = run("alone", InlineEngine(), workers=1), run("shared", Tasks())
    assert tree(here / "alone") == tree(here / "shared")
    assert len(alone.unreadable) == 1
    assert alone.unreadable == shared.unreadable
    for executor in (InlineEngine(), Tasks()):
        with pytest.raises(BadInput, match=r"b\.txt\.gz"):
            run("out", executor, on_error="fail")
        shutil.rmtree(here / "out.partial")
