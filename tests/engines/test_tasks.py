"""Many tasks on one executor: each result once, few in flight, and how far those are that take long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from convert.errors import BadInput, WorkerLost
from tokenmill.engines.engine import BorrowedEngine, Engine
from tokenmill.engines.inline_engine import InlineEngine
from tokenmill.engines.tasks import TaskPool, run_tasks


class Slow(Engine):
    """Tasks are done when they are told to be; each tells that it has done 10 bytes."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, Future[int]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Any = Future()
        future.done_bytes = 10
        self.begun.append((args[0], future))
        return future


def twice(number: int) -> int:
    return 2 * number


def drawn(count: int, taken: list[int]) -> Iterator[int]:
    for number in range(count):
        taken.append(number)
        yield number


@pytest.mark.parametrize("window", [1, 2, 5, 100])
def test_no_more_are_in_flight_than_asked_for_however_long_they_take(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokenmill.engines.tasks.SHOW_SECONDS", 0.001)
    executor = Slow()
    taken: list[int] = []
    shown: list[int] = []
    found: list[tuple[int, int]] = []

    def show(done_bytes: int) -> None:
        shown.append(done_bytes)
        if len(shown) % 4 == 0 and executor.begun:  # after some looks in vain one of them is done
            number, future = executor.begun.pop()
            future.set_result(twice(number))

    for task, result in run_tasks(executor, twice, drawn(9, taken), window, str, show):
        found.append((task, result))
        assert len(taken) - len(found) < window
    assert sorted(found) == [(number, 2 * number) for number in range(9)]
    assert max(shown) == 10 * min(window, 9)


def test_the_first_error_ends_it_and_nothing_else_is_begun() -> None:
    def fail_at_3(number: int) -> int:
        if number == 3:
            raise BadInput("no more")
        return number

    taken: list[int] = []
    with pytest.raises(BadInput):
        list(run_tasks(InlineEngine(), fail_at_3, drawn(9, taken), 2, str))
    assert len(taken) <= 5


def test_what_an_executor_does_to_a_task_names_it() -> None:
    class Cancelling(Engine):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    class Raising(Engine):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(EOFError("the worker has gone"))
            return future

    ended = ThreadPoolExecutor(1)
    ended.shutdown()
    cases: list[tuple[Engine, str]] = [
        (Cancelling(), "cancelled .*number 3"),
        (BorrowedEngine(ended, 1), "after shutdown .*number 3"),
    ]
    for executor, told in cases:
        with pytest.raises(WorkerLost, match=told):
            list(run_tasks(executor, twice, [3], 1, lambda number: f"number {number}"))
    with pytest.raises(EOFError) as raised:
        list(run_tasks(Raising(), twice, [3], 1, lambda number: f"number {number}"))
    assert "number 3" in raised.value.__notes__[0]


def test_without_tasks_there_is_nothing_to_wait_for() -> None:
    assert list(run_tasks(InlineEngine(), twice, iter([]), 3, str)) == []
    with TaskPool(InlineEngine()) as pool:
        assert list(pool.done(0.001)) == []


def test_a_result_from_another_thread_is_taken_at_once() -> None:
    executor = Slow()
    with TaskPool(executor) as pool:
        pool.submit("task", str, twice, 4)
        threading.Timer(0.05, lambda: executor.begun[0][1].set_result(8)).start()
        assert list(pool.done(60)) == [("task", 8)]


def test_workers_that_nobody_manages_are_no_hang() -> None:
    class Unmanaged(Engine):
        def check(self) -> None:
            raise MemoryError

        def submit(self, fn, /, *args, **kwargs):
            return Future()

    with TaskPool(Unmanaged()) as pool:
        pool.submit(1, lambda: "a task", str)
        with pytest.raises(MemoryError):
            list(pool.done())
