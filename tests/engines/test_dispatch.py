"""Who gets which task, without any process."""

from __future__ import annotations

import random
from collections import deque
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from convert.errors import WorkerLost
from tokenmill.engines.dispatch import AHEAD_BYTES, Dispatch
from tokenmill.engines.worker_process import Task


class Named:
    """What is asked of a worker."""

    def __init__(self, name: str) -> None:
        self.name, self.tasks, self.sticky = name, deque[Any](), None


class Game:
    """A dispatch, and its workers by name."""

    def __init__(self, *workers: str) -> None:
        self.dispatch = Dispatch()
        self.workers: dict[str, Any] = {}
        for name in workers:
            self.join(name)

    def join(self, name: str) -> None:
        self.workers[name] = Named(name)
        self.dispatch.join(self.workers[name])

    def add(self, *names: str, size: int = 0) -> list[Task]:
        """Tasks; what stands behind a colon is the key of a sticky one."""
        tasks = []
        for name in names:
            sticky = name.partition(":")[2] or None
            future: Any = Future()
            tasks.append(Task(future, name.encode() + bytes(size), sticky))
            self.dispatch.add(tasks[-1])
        return tasks

    def given(self) -> list[str]:
        """All that is handed out now, as "worker task"."""
        found = []
        while (pair := self.dispatch.next()) is not None:
            worker, task = pair
            assert worker.tasks[-1] is task
            found.append(f"{worker.name} {task.payload.rstrip(bytes(1)).decode()}")
        return found

    def answer(self, *names: str) -> None:
        for name in names:
            self.dispatch.answered(self.workers[name]).future.set_result(None)


def test_in_order_to_whoever_is_free_and_none_ahead_of_the_last() -> None:
    game = Game("A", "B")
    game.add("1", "2", "3", "4")
    assert game.given() == ["A 1", "B 2"]
    game.answer("B")
    assert game.given() == ["B 3"]
    game.answer("A", "B")
    assert game.given() == ["A 4"]
    assert not game.dispatch.is_done
    game.answer("A")
    assert game.dispatch.is_done


@pytest.mark.parametrize(
    ("size", "count", "expected"), [(AHEAD_BYTES - 1, 5, 3), (AHEAD_BYTES, 5, 2), (1, 4, 2)]
)
def test_a_second_task_is_small_and_leaves_one_for_each_worker(size: int, count: int, expected: int) -> None:
    game = Game("A", "B")
    game.add(*"12345"[:count], size=size)
    assert len(game.given()) == expected


def test_what_a_worker_died_of_comes_first_and_is_done_alone() -> None:
    game = Game("A", "B")
    game.add(*"123456")
    assert game.given() == ["A 1", "B 2", "A 3", "B 4"]
    begun = game.dispatch.lose(game.workers["A"])
    assert begun is not None
    assert begun.payload == b"1"
    game.dispatch.try_again(begun)
    game.join("C")
    assert game.given() == []
    game.answer("B", "B")
    assert game.given() == ["C 1"]
    game.answer("C")
    assert game.given() == ["B 3", "C 5"]


def test_sticky_tasks_go_to_the_worker_that_had_the_one_before() -> None:
    game = Game("A", "B", "C")
    game.add("1:a", "1:b", "1:c", "x")
    assert game.given() == ["A 1:a", "B 1:b", "C 1:c"]
    game.add("2:b", "2:a")
    game.answer("B", "A", "C")
    assert game.given() == ["B x", "A 2:a"]  # in the order in which they came
    game.answer("B")
    assert game.given() == ["B 2:b"]
    game.add("1:d")
    game.answer("A")
    assert game.given() == []  # it keeps a, C keeps c
    game.dispatch.release("c")
    assert game.given() == ["C 1:d"]
    game.add("3:a")
    assert game.dispatch.lose(game.workers["A"]) is None
    game.answer("B", "C")
    assert game.given() == []
    game.dispatch.release("b")
    assert game.given() == ["B 3:a"]
    game.dispatch.release("nobody's")


def test_of_several_tasks_with_a_new_key_one_worker_gets_all() -> None:
    game = Game("A", "B")
    game.add("1:a", "2:a", "3:a")
    assert game.given() == ["A 1:a"]
    game.answer("A")
    assert game.given() == ["A 2:a"]


def test_a_sticky_task_that_a_worker_died_of_needs_no_worker_without_a_key() -> None:
    game = Game("A", "B")
    game.add("1:a", "1:b")
    assert game.given() == ["A 1:a", "B 1:b"]
    begun = game.dispatch.lose(game.workers["A"])
    assert begun is not None
    game.dispatch.try_again(begun)
    game.answer("B")
    assert game.given() == ["B 1:a"]
    game.add("2:b")
    game.answer("B")
    assert game.given() == ["B 2:b"]


def test_cancelled_tasks_are_passed_over() -> None:
    game = Game("A")
    first, second, third = game.add("1", "2:a", "3")
    for task in (first, second):
        task.future.cancel()
    assert game.given() == ["A 3"]
    game.answer("A")
    assert game.dispatch.is_done
    assert third.future.done()


def test_closed_it_takes_no_more_and_cancels_what_is_there() -> None:
    game = Game("A")
    begun, fresh = game.add("1", "2")
    assert game.given() == ["A 1"]
    game.dispatch.try_again(game.dispatch.lose(game.workers["A"]) or begun)
    game.dispatch.close(cancel=False)
    with pytest.raises(RuntimeError, match="after shutdown"):
        game.add("3")
    game.dispatch.close(cancel=True)
    assert (game.dispatch.is_done, fresh.future.cancelled()) == (True, True)
    assert isinstance(begun.future.exception(0), CancelledError)


def test_all_fail_but_those_that_are_cancelled() -> None:
    game = Game()
    first, second = game.add("1", "2:a")
    first.future.cancel()
    game.dispatch.fail(WorkerLost("gone"))
    assert game.dispatch.is_done
    assert isinstance(second.future.exception(0), WorkerLost)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_every_task_is_done_once(seed: int) -> None:
    """Workers come, answer and die in any order; keys are held by one worker at a time."""
    play(seed)


def play(seed: int) -> None:
    rng = random.Random(seed)
    game = Game(*"ABCD"[: rng.randint(1, 4)])
    tasks, names, keys = [], iter(range(10**6)), set("uvw")
    for _ in range(400):
        chance = rng.random()
        busy = [name for name, worker in game.workers.items() if worker.tasks]
        if chance < 0.4:
            key = rng.choice(["", "", ":u", ":v", ":w"])
            tasks += game.add(f"{next(names)}{key}")
        elif chance < 0.8 and busy:
            game.answer(rng.choice(busy))
        elif chance < 0.9:
            game.dispatch.release(rng.choice(sorted(keys)))
        elif chance < 0.95 and game.workers:
            begun = game.dispatch.lose(game.workers.pop(rng.choice(sorted(game.workers))))
            if begun is not None:
                game.dispatch.try_again(begun)
        elif chance < 0.97 and tasks:
            rng.choice(tasks).future.cancel()
        else:
            game.join(f"W{next(names)}")
        game.given()
        held = [worker.sticky for worker in game.workers.values() if worker.sticky is not None]
        assert len(held) == len(set(held))
    game.join("last")
    while not game.dispatch.is_done:
        for key in keys:  # what waits for a worker without a key gets one
            game.dispatch.release(key)
        game.given()
        busy = [name for name, worker in game.workers.items() if worker.tasks]
        assert busy
        game.answer(*busy)
    assert all(task.future.done() for task in tasks)


def forgets_its_own(dispatch: Dispatch, key: Any) -> None:
    if (worker := dispatch._holders.pop(key, None)) is not None:
        worker.sticky = None
        dispatch._own.pop(worker)


def begins_no_queue_again(dispatch: Dispatch, worker: Any) -> Any:
    begun = LOSE(dispatch, worker)
    if worker.sticky is not None:
        dispatch._unclaimed.pop(worker.sticky, None)
    return begun


def two_hold_a_key(dispatch: Dispatch, worker: Any, task: Any) -> None:
    dispatch._holders.pop(task.sticky, None)
    GIVE(dispatch, worker, task)


LOSE, GIVE = Dispatch.lose, Dispatch._give


@pytest.mark.parametrize(
    ("name", "fault"),
    [("release", forgets_its_own), ("lose", begins_no_queue_again), ("_give", two_hold_a_key)],
)
def test_random_games_find_faults(name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dispatch, name, fault)
    with pytest.raises((AssertionError, KeyError)):
        deque(map(play, range(30)))


def test_the_next_sticky_task_waits_for_its_worker_and_no_longer() -> None:
    game = Game("A", "B")
    game.add("1:a")
    assert game.given() == ["A 1:a"]
    game.add("2:a")
    assert game.given() == []  # B is free, but has not its key
    game.answer("A")
    assert game.given() == ["A 2:a"]
    game.answer("A")
    game.add("3:a")  # comes while A is idle
    assert game.given() == ["A 3:a"]
