"""A model of work begun ahead: a thread that works in its own time, and children of forks, which have no
thread. Whatever happens, items come once each and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from state_machines import finds_fault, run_model

from flat_tokens.rows import ahead
from flat_tokens.rows.ahead import Ahead, run_ahead


class Thread:
    """In place of a pool of one thread: works when it is told to, and not at all once its process has forked."""

    made: list[Thread]

    def __init__(self, count: int, name: str) -> None:
        self.process, self.waiting, self.is_shut = ahead.os.getpid(), list[Work](), False
        Thread.made.append(self)

    def submit(self, work: Callable[[], Any]) -> Work:
        assert not self.is_shut
        self.waiting.append(Work(self, work))
        return self.waiting[-1]

    def shutdown(self, wait: bool) -> None:
        assert not wait or self.process == ahead.os.getpid(), "waits for a thread that is not there"
        self.is_shut = True


class Work:
    def __init__(self, thread: Thread, work: Callable[[], Any]) -> None:
        self._thread, self._work, self._results = thread, work, list[Any]()

    def do(self) -> None:
        if not self._results:
            self._results.append(self._work())

    def result(self) -> Any:
        if not self._results:
            assert self._thread.process == ahead.os.getpid(), "waits for a thread that is not there"
            while not self._results:
                self._thread.waiting.pop(0).do()
        return self._results[0]


def squares(step: int, worker: Ahead) -> Iterator[tuple[int, int]]:
    """Three items ahead of what is asked for."""
    pending = [worker.begin(lambda at=step + i: (at, at * at)) for i in range(3)]  # type: ignore[misc]
    while True:
        step += 1
        pending.append(worker.begin(lambda at=step + 2: (at, at * at)))  # type: ignore[misc]
        yield pending.pop(0).result()


class Prefetching(RuleBasedStateMachine):
    run = staticmethod(run_ahead)

    def __init__(self) -> None:
        super().__init__()
        self._process = 1
        Thread.made = []
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(ahead.os, "getpid", lambda: self._process)
        self._patch.setattr(ahead, "ThreadPoolExecutor", Thread)

    @initialize(step=st.integers(0, 5), prefetch=st.sampled_from([True, True, False]))
    def start(self, step: int, prefetch: bool) -> None:
        self._items, self._step = self.run(squares, step, prefetch), step

    def teardown(self) -> None:
        self._items.close()  # type: ignore[attr-defined]
        assert all(thread.is_shut for thread in Thread.made)
        self._patch.undo()

    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        for _ in range(count):
            assert next(self._items) == (self._step, self._step**2)
            self._step += 1

    @rule(count=st.integers(1, 4))
    def work(self, count: int) -> None:
        """The thread gets on."""
        thread = next((thread for thread in Thread.made[-1:] if thread.process == self._process), None)
        for _ in range(min(count, len(thread.waiting)) if thread else 0):
            thread.waiting.pop(0).do()  # type: ignore[union-attr]

    @rule()
    def fork(self) -> None:
        """The child goes on, between two items."""
        self._process += 1


def test_items_come_once_and_in_order() -> None:
    run_model(Prefetching, 40)


def without_forks(work: Any, step: int, prefetch: bool) -> Iterator[Any]:
    with ahead.working_ahead(prefetch) as worker:
        yield from work(step, worker)


def from_the_start(work: Any, step: int, prefetch: bool) -> Iterator[Any]:
    process, generator = ahead.os.getpid(), run_ahead(work, step, prefetch)
    while True:
        if ahead.os.getpid() != process:
            process, generator = ahead.os.getpid(), run_ahead(work, step, prefetch)
        yield next(generator)


@pytest.mark.parametrize("fault", [without_forks, from_the_start])
def test_the_model_finds_faults(fault: Any) -> None:
    class Faulty(Prefetching):
        run = staticmethod(fault)

    finds_fault(Faulty, 40)
