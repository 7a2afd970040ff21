"""Which task is a worker's turn, without any process."""

from __future__ import annotations

from collections import deque
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from convert.errors import WorkerLost
from convert.processes.waiting_tasks import _AHEAD_BYTES, WaitingTasks


def plain() -> None: ...


def gather() -> None: ...


def waiting(*names: bytes, gathered_waiting: int = 2) -> WaitingTasks:
    """A task for each name; those that begin with g are gathered."""
    tasks = WaitingTasks((gather,), gathered_waiting)
    for name in names:
        tasks.put(Future(), name, gather if name.startswith(b"g") else plain)
    return tasks


class Idle:
    """What is asked of a worker."""

    def __init__(self) -> None:
        self.tasks: deque[Any] = deque()
        self.gathers = False


def workers(count: int) -> list[Any]:
    return [Idle() for _ in range(count)]


def names_taken(tasks: WaitingTasks, worker: Any, alive: list[Any], count: int) -> list[bytes | None]:
    taken = [tasks.take(worker, alive) for _ in range(count)]
    return [task.payload if task else None for task in taken]


def test_the_last_worker_gathers_and_the_others_only_what_it_leaves_too_long() -> None:
    alive = workers(2)
    names = b"a", b"g1", b"g2", b"b", b"g3"
    assert names_taken(waiting(*names), alive[1], alive, 4) == [b"g1", b"g2", b"g3", b"a"]
    assert names_taken(waiting(*names), alive[0], alive, 4) == [b"g1", b"a", b"b", None]
    alive[0].gathers = True
    assert names_taken(waiting(b"g1"), alive[0], alive, 2) == [b"g1", None]


@pytest.mark.parametrize(
    ("size", "count", "expected"), [(_AHEAD_BYTES, 3, True), (_AHEAD_BYTES + 1, 3, False), (1, 2, False)]
)
def test_a_second_task_is_small_and_leaves_one_for_each_worker(size: int, count: int, expected: bool) -> None:
    alive = workers(2)
    first = waiting(b"a").take(alive[0], alive)
    alive[0].tasks.append(first)
    tasks = waiting(*[b"b" * size] * count)
    assert (tasks.take(alive[0], alive) is not None) == expected
    assert len(tasks) == count - expected


def test_what_a_worker_died_of_comes_first_and_is_done_alone() -> None:
    alive = workers(2)
    tasks = waiting(b"a", b"b", b"c")
    died_of, behind = (tasks.take(alive[0], alive) for _ in range(2))
    assert died_of is not None
    assert behind is not None
    died_of.tries = 1
    tasks.give_back([died_of, behind])
    alive[1].tasks.append(behind)
    assert tasks.take(alive[0], alive) is None
    alive[1].tasks.clear()
    assert tasks.take(alive[0], alive) is died_of
    alive[0].tasks.append(died_of)
    assert tasks.take(alive[1], alive) is None
    alive[0].tasks.clear()
    assert names_taken(tasks, alive[1], alive, 3) == [b"b", b"c", None]


def test_closed_it_takes_no_more_and_cancels_what_is_there() -> None:
    tasks = WaitingTasks((), 2)
    fresh: Future[None] = Future()
    begun: Future[None] = Future()
    begun.set_running_or_notify_cancel()
    for future in (fresh, begun):
        tasks.put(future, b"", plain)
    assert not tasks.closed
    assert not tasks.close(cancel=False)
    assert (tasks.closed, len(tasks), fresh.cancelled()) == (True, 2, False)
    with pytest.raises(RuntimeError, match="after shutdown"):
        tasks.put(Future(), b"", plain)
    assert tasks.close(cancel=True)
    assert (len(tasks), fresh.cancelled()) == (0, True)
    assert isinstance(begun.exception(0), CancelledError)


def test_all_fail_but_those_that_are_cancelled() -> None:
    tasks = WaitingTasks((), 2)
    futures: list[Future[None]] = [Future(), Future()]
    for future in futures:
        tasks.put(future, b"", plain)
    futures[0].cancel()
    tasks.fail(WorkerLost("gone"))
    assert (len(tasks), futures[0].cancelled()) == (0, True)
    assert isinstance(futures[1].exception(0), WorkerLost)


def test_tasks_with_a_key_go_to_the_worker_that_had_the_one_before() -> None:
    alive = workers(3)
    tasks = WaitingTasks((gather,), 2)

    def put(name: bytes, key: str | None = None) -> None:
        tasks.put(Future(), name, gather if name.startswith(b"g") else plain, key)

    for name, key in ((b"a1", "a"), (b"b1", "b"), (b"c1", "c"), (b"x", None)):
        put(name, key)
    assert names_taken(tasks, alive[0], alive, 2) == [b"a1", b"x"]  # none with another key, but others
    assert names_taken(tasks, alive[1], alive, 1) == [b"b1"]
    put(b"a2", "a")
    put(b"g1")
    assert names_taken(tasks, alive[1], alive, 1) == [
        None
    ]  # the last worker gathers; c is not for who keeps b
    assert names_taken(tasks, alive[0], alive, 2) == [b"a2", None]
    put(b"b2", "b")
    assert names_taken(tasks, alive[2], alive, 3) == [b"g1", b"c1", None]
    assert names_taken(tasks, alive[1], alive, 1) == [b"b2"]

    put(b"a3", "a")  # whose worker is lost: to one that keeps nothing
    alive = alive[1:]
    assert names_taken(tasks, alive[0], alive, 1) == [None]
    tasks.release("b")
    assert names_taken(tasks, alive[0], alive, 2) == [b"a3", None]
    tasks.release("nobody's")

    put(b"d1", "d")
    assert tasks.take(alive[1], alive) is None  # it keeps c
    tasks.release("a")
    died_of = tasks.take(alive[0], alive)
    assert died_of is not None
    died_of.tries = 1
    fresh: Any = Idle()
    tasks.give_back([died_of])
    assert tasks.take(alive[1], [alive[1], fresh]) is None  # there is one that keeps nothing
    assert tasks.take(fresh, [alive[1], fresh]) is died_of
    tasks.give_back([died_of])
    assert tasks.take(alive[1], [alive[1]]) is died_of  # there is no other
