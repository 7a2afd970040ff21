"""Any executor gives the same bytes: threads, processes that nobody prepared, one that can't cancel."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from input_kinds import KINDS, write_kind
from naive_conversion import make_documents, tree

from convert import ConvertOptions, Summary
from convert import convert as run_conversion
from convert.errors import BadInput, EngineFailure
from convert.workdir.store import open_workdir
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.job import JobKey, find_job, write_job
from tokenmill.stores import StoreError


@pytest.fixture
def corpus(here: Path) -> Path:
    """Files of all kinds, some much longer than others."""
    (here / "in").mkdir()
    for number, kind in enumerate(KINDS):
        write_kind(here / "in" / f"{number}", make_documents(20 if number % 3 else 200, seed=number), kind)
    return here


def run(output: str, executor: Executor, **more: Any) -> Summary:
    base: dict[str, Any] = {"inputs": ["in/*"], "tokenizer": "tok.json", "progress": "none", "workers": 4}
    base |= {"text_chunk_bytes": 3000, "chunk_tokens": 64, "validation_fraction": 0.2, "output": output}
    return run_conversion(ConvertOptions(**{**base, **more}), executor)


@pytest.mark.parametrize("options", [{}, {"validation_docs": 30, "validation_fraction": None}])
def test_threads(options: dict[str, Any], corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convert.planning.plan.MIN_GIVEN_SHARD_BYTES", 2000)
    monkeypatch.setattr("convert.shards.write_units.MERGE_TOKENS", (640, 640))
    run("clean", InlineEngine(), **options)
    for count in (1, 2, 8):
        with ThreadPoolExecutor(count) as pool:
            run(f"out-{count}", pool, **options)
        assert tree(corpus / f"out-{count}") == tree(corpus / "clean")


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_processes_that_nobody_prepared(start_method: str, corpus: Path) -> None:
    run("clean", InlineEngine())
    with ProcessPoolExecutor(2, multiprocessing.get_context(start_method)) as pool:
        run("out", pool)
    assert tree(corpus / "out") == tree(corpus / "clean")


def test_two_conversions_at_a_time_in_one_pool_of_threads(corpus: Path) -> None:
    run("clean-0", InlineEngine())
    run("clean-1", InlineEngine(), seed=5, validation_fraction=0.5, separator="e")
    with ThreadPoolExecutor(4) as pool:
        second = {"seed": 5, "validation_fraction": 0.5, "separator": "e"}
        turns = [
            threading.Thread(target=run, args=(f"out-{number}", pool), kwargs=second if number else {})
            for number in range(2)
        ]
        for turn in turns:
            turn.start()
        for turn in turns:
            turn.join(120)
            assert not turn.is_alive()
    for number in range(2):
        assert tree(corpus / f"out-{number}") == tree(corpus / f"clean-{number}")


class CannotCancel(ThreadPoolExecutor):
    """As some clusters' executors are."""

    def shutdown(self, wait: bool = True) -> None:  # type: ignore[override]
        super().shutdown(wait)


def test_an_executor_that_cannot_cancel_hides_no_error(corpus: Path) -> None:
    (corpus / "in/zz.jsonl").write_text('{"text": 5}\n')
    with pytest.raises(BadInput, match=r"in/zz\.jsonl.*line 1"):
        run("out", CannotCancel(2))
    (corpus / "in/zz.jsonl").unlink()
    assert list(corpus.glob("out*")) == [corpus / "out.partial"]


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, object(), "threads"])
def test_what_is_no_executor_was_passed_over_for_processes(executor: Any, corpus: Path) -> None:
    with pytest.raises(TypeError, match="executor"):
        run("out", executor)
    assert not (corpus / "out.partial").exists()


def test_a_job_is_read_from_its_file_only_as_it_was_written(corpus: Path) -> None:
    keys: list[JobKey] = []

    class Spying(InlineEngine):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            keys.extend(each for each in args if isinstance(each, JobKey))
            return super().submit(fn, *args, **kwargs)

    run("out", Spying())
    assert len(set(keys)) == 1
    job = find_job(keys[0])
    assert isinstance(job.dataset, Path)
    for folder in (job.shards.store.path, job.dataset):
        folder.mkdir(parents=True)
    workdir = open_workdir(ConvertOptions(["a"], "b", corpus / "place"))
    workdir.acquire()
    key = write_job(job, workdir.put_job, {})
    path = Path(key.path)
    assert [source.path for source in find_job(key).plan.sources] == [
        source.path for source in job.plan.sources
    ]
    path.write_bytes(path.read_bytes().replace(b"endoftext", b"endoftexx"))
    assert find_job(key).separator == job.separator  # from memory
    other = write_job(job._replace(seed=9), workdir.put_job, {})
    path = Path(other.path)
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(StoreError, match="job"):
        find_job(other)
    with pytest.raises(EngineFailure):
        find_job(JobKey("none"))
    workdir.close()
