"""The contract of engines, on every engine: each task has one result or one error, whatever happens to workers."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from engine_kinds import KINDS, Clusters, open_kind
from sample_tasks import (
    break_off,
    die_often,
    fail_often,
    nap,
    process_id,
    refuse,
    reverse,
    square,
    unpicklable,
)

from tokenmill.engines import tasks
from tokenmill.engines.ending import ending
from tokenmill.engines.engine import Engine
from tokenmill.engines.errors import WorkerLost
from tokenmill.engines.tasks import TaskPool, run_tasks
from tokenmill.errors import BadArgument
from tokenmill.stores import StoreError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
RUNS = int(os.environ.get("ENGINE_RUNS", "5"))  # of the last test; 1,000 look for races
OUR_OWN = ("fork", "spawn", "dask")  # that run processes of their own


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "RETRY_SECONDS", 0.02)


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


def of_kind(engine: Engine) -> str:
    return engine.kind  # type: ignore[attr-defined, no-any-return]


def test_results(engine: Engine) -> None:
    assert engine.worker_count >= 1
    assert results(engine, square, count=50) == {number: number**2 for number in range(50)}
    for size in (0, 17, 3 << 20):
        data = random.Random(size).randbytes(size)
        assert engine.submit(reverse, data, name="reverse-1").result(60) == data[::-1]


def test_an_error_keeps_its_class_and_message_and_says_where_it_was(engine: Engine) -> None:
    with pytest.raises(BadArgument) as refused:
        list(run_tasks(engine, refuse, ["en.txt"], 1, str))
    assert str(refused.value) == "en.txt: bad"
    with pytest.raises(ZeroDivisionError) as raised:
        list(run_tasks(engine, break_off, ["en.txt"], 1, str))
    notes = "".join(raised.value.__notes__)
    assert "while a worker processed en.txt" in notes
    assert ("break_off" in notes) == (of_kind(engine) in OUR_OWN)


def test_a_result_that_cannot_be_sent_is_an_error_not_a_hang(engine: Engine) -> None:
    if of_kind(engine) in ("inline", "threads", "dask"):
        pytest.skip("nothing is sent, or cloudpickle sends it")
    with pytest.raises(Exception, match=r"(?i)pickle|serializ|local"):
        engine.submit(unpicklable).result(60)
    assert engine.submit(square, 3).result(60) == 9


def test_tasks_that_fail_by_a_busy_store_run_again_within_a_bound(
    engine: Engine, notices: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    found = results(engine, fail_often, tmp_path / "a", 2, retries=2, notice=notices.append)
    assert found == {number: number**2 for number in range(8)}
    assert notices
    assert all("503" in notice and "Retrying" in notice for notice in notices)
    with pytest.raises(StoreError, match="503"):
        results(engine, fail_often, tmp_path, 2, retries=1)


def test_a_task_runs_again_if_its_worker_dies(engine: Engine, tmp_path: Path) -> None:
    kind = of_kind(engine)
    if kind in ("inline", "threads"):
        pytest.skip("it has no processes")
    if kind == "pool":  # the caller's pool is broken then
        with pytest.raises(WorkerLost, match="task"):
            results(engine, die_often, tmp_path, 1)
        return
    count = 8 if kind in ("fork", "spawn") else 1  # a cluster takes seconds to replace a worker
    assert results(engine, die_often, tmp_path, 1, count=count) == {n: n**2 for n in range(count)}


def test_a_task_that_kills_its_workers_is_named(engine: Engine, tmp_path: Path) -> None:
    if of_kind(engine) in ("inline", "threads"):
        pytest.skip("it has no processes")
    with pytest.raises(WorkerLost, match="processing task 0"):
        results(engine, die_often, tmp_path, 100, count=1)


def test_an_interrupt_ends_within_the_grace_and_keeps_what_was_finished(
    engine: Engine, notices: list[str]
) -> None:
    if of_kind(engine) == "inline":
        pytest.skip("nothing waits")
    with TaskPool(engine) as pool:
        started = time.monotonic()

        def work() -> None:
            with ending(engine, notices.append), pool:
                for number in range(100):
                    pool.submit(number, str, nap, number)
                for _ in pool.done():
                    raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            work()
        assert time.monotonic() - started < 30
        assert all(result == number**2 for number, result in pool.finished())
    assert notices[-1].startswith("stopping")


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_may_come_twice_and_leaves_no_process(kind: str, clusters: Clusters) -> None:
    with ExitStack() as stack:
        engine = open_kind(kind, clusters, stack, [])
        engine.start(1, bool)
        worker = engine.submit(process_id).result(60)
        engine.stop(5)
        for _ in range(2):
            engine.shutdown()
        if kind in ("fork", "spawn"):
            assert not Path(f"/proc/{worker}").exists()
        if kind in OUR_OWN:
            with pytest.raises(RuntimeError, match="after shutdown"):
                engine.submit(square, 1)


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_whatever_the_order_of_events_every_task_is_done_once(
    kind: str, clusters: Clusters, tmp_path: Path
) -> None:
    """Tasks of random length on some workers that die at random, until all is done or somebody interrupts it."""
    for seed in range(RUNS):
        rng = random.Random(seed)
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        deadly, interrupted = rng.sample(range(100), rng.randrange(3)), rng.randrange(1, 300)
        found: dict[int, int] = {}
        with ExitStack() as stack:
            engine = open_kind(kind, clusters, stack, [])
            stack.callback(engine.shutdown)
            engine.start(rng.randrange(1, 4), bool)
            pool = stack.enter_context(TaskPool(engine))
            with suppress(KeyboardInterrupt), ending(engine, str):
                for number in range(100):
                    arguments = (die_often, folder, 1) if number in deadly else (nap,)
                    pool.submit(number, str, *arguments, number)
                while len(pool):
                    for number, result in pool.done():
                        assert number not in found
                        found[number] = result
                        if len(found) == interrupted:
                            raise KeyboardInterrupt
            assert len(found) == min(interrupted, 100), seed
            assert all(result == number**2 for number, result in found.items())
