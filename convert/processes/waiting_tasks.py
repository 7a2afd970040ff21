"""The tasks that no worker has yet, and which of them is a worker's turn.

Only here is decided what is handed out next: whether a worker is given a second task ahead, that a task a worker died
of is done alone, that gathered tasks go to as few workers as keep up with them, and those with a key to the worker that
had the one before.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable
from concurrent.futures import CancelledError
from typing import Any

from convert.errors import WorkerLost
from convert.processes.worker_process import Task, TaskFuture, Worker

# A task this small is sent to a worker while it still works on another: it fits the pipe's buffer, so sending never
# blocks, and the worker need not wait for the parent between two tasks (a parent that imports may answer 5 ms late).
_AHEAD_BYTES = 16 << 10


class WaitingTasks:
    """A queue that any thread may use. gathered, gathered_waiting: see `ProcessExecutor`."""

    def __init__(self, gathered: Collection[Callable[..., Any]], gathered_waiting: int) -> None:
        self._queue: deque[Task] = deque()
        self._lock = threading.Lock()
        self._gathered, self._gathered_waiting = gathered, gathered_waiting
        self._keepers: dict[Hashable, Worker] = {}  # who was given the last task with a key
        self._closed = False

    @property
    def closed(self) -> bool:
        """No more tasks come but those that are given back."""
        return self._closed

    def __len__(self) -> int:
        return len(self._queue)

    def put(
        self, future: TaskFuture, payload: bytes, function: Callable[..., Any], key: Hashable = None
    ) -> None:
        """Behind the others; RuntimeError once closed. key: see `ProcessExecutor.submit_kept`."""
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._queue.append(Task(future, payload, function in self._gathered, key))

    def release(self, key: Hashable) -> None:
        """No other task with this key comes."""
        with self._lock:
            self._keepers.pop(key, None)

    def give_back(self, tasks: Iterable[Task]) -> None:
        """Of a worker that died, oldest first: they stand before the others."""
        with self._lock:
            self._queue.extendleft(reversed(list(tasks)))

    def close(self, *, cancel: bool) -> bool:
        """Take no more, and cancel those there are if asked to; whether it was closed before."""
        with self._lock:
            was_closed, self._closed = self._closed, True
            while cancel and self._queue:
                future = self._queue.popleft().future
                if not future.cancel():  # handed back by a worker that died
                    future.set_exception(CancelledError())
        return was_closed

    def fail(self, error: WorkerLost) -> None:
        """All of them, for there is no worker left."""
        with self._lock:
            while self._queue:
                future = self._queue.popleft().future
                if not future.cancelled():
                    future.set_exception(error)

    def take(self, worker: Worker, alive: list[Worker]) -> Task | None:
        """The task that is next for one of the workers alive, taken out; None if it gets none now.

        One that has a task already gets a small one only, and only if enough are left for the others. A task that a
        worker died of is done alone, with nothing beside it.
        """
        with self._lock:
            if any(task.tries for other in alive for task in other.tasks) or not self._queue:
                return None
            if self._queue[0].tries and any(other.tasks for other in alive):
                return None
            place = self._choose(worker, alive)
            if place is None:
                return None
            task = self._queue[place]
            small = len(task.payload) <= _AHEAD_BYTES
            if worker.tasks and not (small and len(self._queue) > len(alive)):
                return None  # the last tasks wait here for whoever is free first
            del self._queue[place]
            if task.key is not None:
                self._keepers[task.key] = worker
            return task

    def _choose(self, worker: Worker, alive: list[Worker]) -> int | None:
        """The place in the queue of the task that is a worker's turn, None if it leaves those there are to others.

        Of the gathered tasks the last worker takes each as it comes, the one before it only while more than
        `gathered_waiting` wait, and so on: each kind of work finds a core's caches, and what it needs in memory, as it
        left them (one worker encodes, the other merges: 5 to 8 % of the processor time of 256 MB of English).
        """
        if self._queue[0].tries:  # nothing else is handed out before it is done, so some worker must take it
            able = [other for other in alive if self._may_take(other, self._queue[0], alive)]
            return 0 if worker in able or not able else None
        others_behind = len(alive) - 1 - alive.index(worker)
        places = [place for place, task in enumerate(self._queue) if task.gathered]
        if len(places) > others_behind * self._gathered_waiting:
            return places[0]
        for place, task in enumerate(self._queue):
            if not task.gathered and self._may_take(worker, task, alive):
                return place
        return places[0] if places and worker.gathers else None

    def _may_take(self, worker: Worker, task: Task, alive: list[Worker]) -> bool:
        """One with a key is its keeper's; one that nobody keeps, of a worker that keeps no other."""
        if task.key is None:
            return True
        keeper = self._keepers.get(task.key)
        if keeper in alive:
            return keeper is worker
        return all(other is not worker for other in self._keepers.values())
