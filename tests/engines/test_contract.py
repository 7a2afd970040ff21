"""The contract of engines, on every engine: each task has one result or one error, whatever happens to workers."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from inline_engine import InlineEngine
from sample_tasks import (
    begin_and_wait,
    break_off,
    die_often,
    fail_often,
    nap,
    process_id,
    refuse,
    reverse,
    square,
    unpicklable,
    wait_for,
)

from tokenmill.engines import tasks
from tokenmill.engines.engine import BorrowedEngine, Engine
from tokenmill.engines.errors import WorkerLost
from tokenmill.engines.tasks import TaskPool
from tokenmill.errors import BadArgument
from tokenmill.stores import StoreUnavailable

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
RUNS = int(os.environ.get("ENGINE_RUNS", "5"))  # of the last test; 1,000 look for races


def results(
    engine: Engine, function: Callable[..., Any], *arguments: Any, count: int = 8, **more: Any
) -> Any:
    """The results of function(*arguments, number) by number."""
    found = {}
    with TaskPool(engine, **more) as pool:
        for number in range(count):
            pool.submit(number, lambda number=number: f"task {number}", function, *arguments, number)
        while len(pool):
            for number, result in pool.done():
                assert number not in found
                found[number] = result
    return found


def test_results(engine: Engine) -> None:
    assert engine.worker_count >= 1
    for size in (0, 17, 3 << 20):
        data = random.Random(size).randbytes(size)
        assert engine.submit(reverse, data, name="reverse-1").result(60) == data[::-1]
    assert results(engine, square, count=50) == {number: number**2 for number in range(50)}


@pytest.mark.parametrize("error", [BadArgument, ZeroDivisionError])
def test_the_first_error_keeps_its_class_and_says_where_it_was(
    error: type[Exception], engine: Engine, kind: str
) -> None:
    taken: list[str] = []
    names = (taken.append(name) or name for name in ["en.txt"] * 100)  # type: ignore[func-returns-value]
    with pytest.raises(error, match=r"en\.txt") as raised, TaskPool(engine) as pool:
        list(pool.run(refuse if error is BadArgument else break_off, names, 2, str))
    assert len(taken) <= 2
    if error is ZeroDivisionError:
        notes = "".join(raised.value.__notes__)
        assert "while a worker processed en.txt" in notes
        assert ("break_off" in notes) == (kind in ("fork", "spawn", "dask"))


@pytest.mark.parametrize("window", [1, 2, 100])
def test_few_tasks_are_in_flight(window: int) -> None:
    taken, found = [], []
    numbers = (taken.append(number) or number for number in range(9))  # type: ignore[func-returns-value]
    with TaskPool(InlineEngine()) as pool:
        for number, result in pool.run(square, numbers, window, str):
            assert len(taken) - len(found) <= window
            found.append((number, result))
    assert sorted(found) == [(number, number**2) for number in range(9)]


def test_a_result_that_cannot_be_sent_is_an_error_not_a_hang(engine: Engine, kind: str) -> None:
    if kind in ("inline", "threads", "dask"):
        pytest.skip("nothing is sent, or cloudpickle sends it")
    with pytest.raises(Exception, match=r"(?i)pickle|serializ|local"):
        engine.submit(unpicklable).result(60)
    assert engine.submit(square, 3).result(60) == 9


@pytest.mark.slow
@pytest.mark.parametrize("failures", [2, 3])
def test_tasks_that_fail_by_a_busy_store_run_again_within_a_bound(
    failures: int, engine: Engine, notices: list[str], tmp_path: Path
) -> None:
    if failures == 2:
        found = results(engine, fail_often, tmp_path, failures, retries=2, notice=notices.append)
        assert found == {number: number**2 for number in range(8)}
    else:
        with pytest.raises(StoreUnavailable, match="503"):
            results(engine, fail_often, tmp_path, failures, retries=2, notice=notices.append)
    assert notices
    assert all("503" in notice and "Retrying" in notice for notice in notices)


@pytest.mark.promise("clusters")
def test_a_task_runs_again_if_its_worker_dies(engine: Engine, kind: str, tmp_path: Path) -> None:
    if kind in ("inline", "threads"):
        pytest.skip("it has no processes")
    if kind == "pool":  # the caller's pool is broken then
        with pytest.raises(WorkerLost, match="task"):
            results(engine, die_often, tmp_path, 1)
        return
    count = 1 if kind == "dask" else 8  # a cluster takes seconds to replace a worker
    assert results(engine, die_often, tmp_path, 1, count=count) == {n: n**2 for n in range(count)}


def test_a_task_that_kills_its_workers_is_named(engine: Engine, kind: str, tmp_path: Path) -> None:
    if kind in ("inline", "threads"):
        pytest.skip("it has no processes")
    with pytest.raises(WorkerLost, match="processing task 0"):
        results(engine, die_often, tmp_path, 100, count=1)


def test_an_error_of_the_executor_names_the_task() -> None:
    class Cancelling(Engine):
        def submit(self, fn: Any, /, *args: Any, name: Any = "", **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    ended = ThreadPoolExecutor(1)
    ended.shutdown()
    cases: list[tuple[Engine, str]] = [
        (Cancelling(), "cancelled"),
        (BorrowedEngine(ended, 1), "after shutdown"),
    ]
    for engine, cause in cases:
        with pytest.raises(WorkerLost, match=f"{cause} .*task 0"):
            results(engine, square, count=1)


@pytest.mark.slow
def test_an_interrupt_ends_within_the_grace_and_keeps_finished_results(
    engine: Engine, notices: list[str], kind: str
) -> None:
    if kind == "inline":
        pytest.skip("nothing waits")
    pool = TaskPool(engine, notice=notices.append)
    started = time.monotonic()
    with suppress(KeyboardInterrupt), pool:
        for number in range(100):
            pool.submit(number, str, nap, number)
        for _ in pool.done():
            raise KeyboardInterrupt
    assert time.monotonic() - started < 30
    assert all(result == number**2 for number, result in pool.finished())
    assert notices[-1].startswith("stopping")


@pytest.mark.parametrize("seconds", [60, 0.05])
def test_running_tasks_have_the_grace_to_finish(
    seconds: float, engine: Engine, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "inline" or (kind in ("threads", "pool") and seconds < 1):
        pytest.skip("nothing waits, or a caller's executor is waited for")
    monkeypatch.setattr(tasks, "GRACE_SECONDS", seconds)
    begun, release = tmp_path / "begun", tmp_path / "release"
    pool = TaskPool(engine, notice=lambda _: release.touch() if seconds > 1 else None)
    with suppress(KeyboardInterrupt), pool:
        pool.submit("first", str, begin_and_wait, begun, release)
        wait_for(begun)
        waiting = [engine.submit(square, 1) for _ in range(5)]
        raise KeyboardInterrupt
    assert list(pool.finished()) == ([("first", "released")] if seconds > 1 else [])
    if kind in ("fork", "spawn") and seconds < 1:
        for future in waiting:
            with suppress(CancelledError, WorkerLost):
                future.result(60)
    release.touch()


def test_the_end_may_come_twice_and_leaves_no_process(kind: str, open_kind: Callable[[str], Engine]) -> None:
    engine = open_kind(kind)
    engine.start(1, bool)
    # The cluster of other tests may be replacing workers that they killed.
    worker = 0 if kind == "dask" else engine.submit(process_id).result(60)
    for end in (engine.kill, engine.shutdown, engine.shutdown):
        end()
    if kind in ("fork", "spawn"):
        assert not Path(f"/proc/{worker}").exists()
    if kind in ("fork", "spawn", "dask"):
        with pytest.raises(RuntimeError, match="after shutdown"):
            engine.submit(square, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_in_any_order_of_events_every_task_is_done_once(
    kind: str, open_kind: Callable[[str], Engine], tmp_path: Path
) -> None:
    """Tasks of random length on some workers that die at random, until all is done or an interrupt comes."""
    for seed in range(RUNS):
        rng = random.Random(seed)
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        deadly, interrupted = rng.sample(range(100), rng.randrange(3)), rng.randrange(1, 300)
        found: dict[int, int] = {}
        engine = open_kind(kind)
        engine.start(rng.randrange(1, 4), bool)
        with suppress(KeyboardInterrupt), TaskPool(engine) as pool:
            for number in range(100):
                arguments = (die_often, folder, 1) if number in deadly else (nap,)
                pool.submit(number, str, *arguments, number)
            while len(pool):
                for number, result in pool.done():
                    assert number not in found
                    found[number] = result
                    if len(found) == interrupted:
                        raise KeyboardInterrupt
        engine.shutdown()
        assert len(found) == min(interrupted, 100), seed
        assert all(result == number**2 for number, result in found.items())
