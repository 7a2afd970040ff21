"""A pool of tasks: few in flight, each result once, how far running tasks are, and what errors say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from sample_tasks import square

from tokenmill.engines import tasks
from tokenmill.engines.engine import BorrowedEngine, Engine
from tokenmill.engines.errors import WorkerLost
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.tasks import TaskPool, run_tasks
from tokenmill.errors import BadArgument


class Slow(Engine):
    """Tasks are done when the test says so; each reports that it has done 10 bytes."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, Future[int]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Any = Future()
        future.done_bytes = 10
        self.begun.append((args[0], future))
        return future


def drawn(count: int, taken: list[int]) -> Iterator[int]:
    for number in range(count):
        taken.append(number)
        yield number


@pytest.mark.parametrize("window", [1, 2, 5, 100])
def test_no_more_are_in_flight_than_allowed_however_long_they_take(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "SHOW_SECONDS", 0.001)
    engine = Slow()
    taken: list[int] = []
    shown: list[int] = []
    found: list[tuple[int, int]] = []

    def show(done_bytes: int) -> None:
        shown.append(done_bytes)
        if len(shown) % 4 == 0 and engine.begun:  # after some looks one of them is done
            number, future = engine.begun.pop()
            future.set_result(square(number))

    for task, result in run_tasks(engine, square, drawn(9, taken), window, str, show):
        found.append((task, result))
        assert len(taken) - len(found) < window
    assert sorted(found) == [(number, number**2) for number in range(9)]
    assert max(shown) == 10 * min(window, 9)


def test_the_first_error_ends_it_and_nothing_else_is_begun() -> None:
    def fail_at_3(number: int) -> int:
        if number == 3:
            raise BadArgument("no more")
        return number

    taken: list[int] = []
    with pytest.raises(BadArgument):
        list(run_tasks(InlineEngine(), fail_at_3, drawn(9, taken), 2, str))
    assert len(taken) <= 5


def test_an_error_of_the_executor_names_the_task() -> None:
    class Cancelling(Engine):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    ended = ThreadPoolExecutor(1)
    ended.shutdown()
    cases: list[tuple[Engine, str]] = [
        (Cancelling(), "cancelled .*number 3"),
        (BorrowedEngine(ended, 1), "after shutdown .*number 3"),
    ]
    for engine, said in cases:
        with pytest.raises(WorkerLost, match=said):
            list(run_tasks(engine, square, [3], 1, lambda number: f"number {number}"))


def test_workers_that_nobody_manages_are_no_hang() -> None:
    class Unmanaged(Slow):
        def check(self) -> None:
            raise MemoryError

    with TaskPool(Unmanaged()) as pool:
        pool.submit(1, str, square, 1)
        with pytest.raises(MemoryError):
            list(pool.done())


def test_the_delay_of_retries_doubles_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(tasks, "SHOW_SECONDS", 0.001)
    calls: list[float] = []

    def busy(number: int) -> int:
        if number:
            return number
        calls.append(time.monotonic())
        if len(calls) < 4:
            error = OSError("busy")
            error.is_transient = True  # type: ignore[attr-defined]
            raise error
        return 0

    with TaskPool(InlineEngine(), retries=3) as pool:
        for number in range(3):
            pool.submit(number, str, busy, number)
        found = []
        while len(pool):
            found += [result for _, result in pool.done()]
    assert found == [1, 2, 0]
    delays = [after - before for before, after in pairwise(calls)]
    assert all(delay >= 0.025 * 2**index for index, delay in enumerate(delays))
