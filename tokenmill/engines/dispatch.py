"""The tasks that no worker has yet, the workers that have none, and who gets what next.

In the order in which tasks came, but:
- a sticky task goes to the worker that had the last one with its key; one whose key nobody has, to a worker that has no
  other (tokenmill/engines/engine.py);
- a worker that has a task gets a second one ahead, if it is small and enough are left for the others;
- a task that a worker died of is done with nothing beside it.

Each step takes the same time however many workers and tasks there are.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Hashable
from concurrent.futures import CancelledError
from itertools import count, islice
from typing import TYPE_CHECKING

from tokenmill.engines.errors import WorkerLost

if TYPE_CHECKING:
    from tokenmill.engines.worker_process import Task, Worker

# A task this small is sent to a worker while it still works on another: it fits the pipe's buffer, so sending never
# blocks, and the worker need not wait for the parent between two tasks (a parent that imports may answer 5 ms late).
AHEAD_BYTES = 16 << 10


class Dispatch:
    """Any thread may add tasks; one thread tells of workers and asks for the `next` hand-out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = count()
        self._again: deque[Task] = deque()  # that a worker died of
        self._common: deque[Task] = deque()
        self._unclaimed: dict[Hashable, deque[Task]] = {}  # sticky ones whose key no worker has
        self._own: dict[Worker, deque[Task]] = {}  # sticky ones, by the worker that has their key
        self._holders: dict[Hashable, Worker] = {}  # by key
        # Dicts, as sets in order, of workers without a task: those without a key, with one, with a task of their own
        # that waits; and of workers with a single task.
        self._idle: dict[Worker, None] = {}
        self._idle_holders: dict[Worker, None] = {}
        self._ready_holders: dict[Worker, None] = {}
        self._with_one: dict[Worker, None] = {}
        self._worker_count = 0
        self._busy_count = 0  # workers with tasks
        self._waiting_count = 0  # tasks without a worker
        self._is_alone = False  # a task is in work beside which none may be
        self.is_closed = False

    @property
    def is_done(self) -> bool:
        """Whether no task waits or is in work."""
        return not self._waiting_count and not self._busy_count

    def add(self, task: Task) -> None:
        """One more task; RuntimeError once closed."""
        with self._lock:
            if self.is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            task.number = next(self._numbers)
            self._put(task)

    def release(self, key: Hashable) -> None:
        """No other task with this key comes."""
        with self._lock:
            worker = self._holders.pop(key, None)
            if worker is None:
                return
            worker.sticky = None
            self._ready_holders.pop(worker, None)
            if own := self._own.pop(worker):
                self._unclaimed[key] = own
            if worker in self._idle_holders:
                del self._idle_holders[worker]
                self._idle[worker] = None

    def join(self, worker: Worker) -> None:
        """A worker is there, and has no task."""
        with self._lock:
            self._worker_count += 1
            self._idle[worker] = None

    def answered(self, worker: Worker) -> Task:
        """A worker has done the first of its tasks, which is taken from it."""
        with self._lock:
            task = worker.tasks.popleft()
            self._is_alone = False
            if worker.tasks:
                self._with_one[worker] = None
                return task
            del self._with_one[worker]
            self._busy_count -= 1
            if worker.sticky is None:
                self._idle[worker] = None
            else:
                self._idle_holders[worker] = None
                if self._own[worker]:
                    self._ready_holders[worker] = None
            return task

    def lose(self, worker: Worker) -> Task | None:
        """A worker is gone; the task it was at, if any. Those behind it wait again, in their turn."""
        with self._lock:
            self._worker_count -= 1
            for group in (self._idle, self._idle_holders, self._ready_holders, self._with_one):
                group.pop(worker, None)
            if worker.sticky is not None:
                del self._holders[worker.sticky]
                if own := self._own.pop(worker):
                    self._unclaimed = {worker.sticky: own, **self._unclaimed}
            if not worker.tasks:
                return None
            self._busy_count -= 1
            self._is_alone = False
            begun = worker.tasks.popleft()
            while worker.tasks:
                self._put(worker.tasks.pop(), in_front=True)
            return begun

    def try_again(self, task: Task) -> None:
        """A task that a worker died of: it is next, alone."""
        with self._lock:
            task.tries += 1
            self._put(task)

    def next(self) -> tuple[Worker, Task] | None:
        """A worker, and the task that it is to be given now, which is among its tasks already; None if none is."""
        with self._lock:
            while (found := self._choose()) is not None:
                worker, queue = found
                task = queue.popleft()
                self._waiting_count -= 1
                if not queue and self._unclaimed.get(task.sticky) is queue:
                    del self._unclaimed[task.sticky]
                if task.future.running() or task.future.set_running_or_notify_cancel():
                    self._give(worker, task)
                    return worker, task
                if worker in self._ready_holders and not self._own[worker]:
                    del self._ready_holders[worker]
            return None

    def close(self, *, cancel: bool) -> None:
        """Take no more, and cancel those that wait if asked to."""
        self.is_closed = True
        for task in self._take_waiting() if cancel else ():
            if not task.future.cancel():  # handed back by a worker that died
                task.future.set_exception(CancelledError())

    def fail(self, error: WorkerLost) -> None:
        """Those that wait all have this error: there is no worker left."""
        for task in self._take_waiting():
            if not task.future.cancelled():
                task.future.set_exception(error)

    def _take_waiting(self) -> list[Task]:
        with self._lock:
            queues = [self._again, *self._own.values(), *self._unclaimed.values(), self._common]
            tasks = [task for queue in queues for task in queue]
            for queue in queues:
                queue.clear()
            self._unclaimed.clear()
            self._ready_holders.clear()
            self._waiting_count = 0
            return tasks

    # -- with the lock held

    def _put(self, task: Task, in_front: bool = False) -> None:
        holder = self._holders.get(task.sticky)
        if task.tries:
            queue = self._again
        elif task.sticky is None:
            queue = self._common
        elif holder is None:
            queue = self._unclaimed.setdefault(task.sticky, deque())
        else:
            queue = self._own[holder]
            if holder in self._idle_holders:
                self._ready_holders[holder] = None
        if in_front:
            queue.appendleft(task)
        else:
            queue.append(task)
        self._waiting_count += 1

    def _choose(self) -> tuple[Worker, deque[Task]] | None:
        """A worker, and the queue of which it may be given the first task."""
        if self._is_alone or (self._again and self._busy_count):
            return None
        idle, idle_holder = next(iter(self._idle), None), next(iter(self._idle_holders), None)
        ready, with_one = next(iter(self._ready_holders), None), next(iter(self._with_one), None)
        if self._again:
            worker = idle or idle_holder
            return None if worker is None else (worker, self._again)
        if idle is not None and (queue := _earliest(self._common, *islice(self._unclaimed.values(), 1))):
            return idle, queue
        if ready is not None:
            return ready, _earliest(self._common, self._own[ready])
        if self._common and idle_holder is not None:
            return idle_holder, self._common
        # The last tasks wait here for whoever is free first.
        enough = self._waiting_count > self._worker_count
        if with_one is not None and enough and self._common and len(self._common[0].payload) <= AHEAD_BYTES:
            return with_one, self._common
        return None

    def _give(self, worker: Worker, task: Task) -> None:
        worker.tasks.append(task)
        self._is_alone = task.tries > 0
        for group in (self._idle, self._idle_holders, self._ready_holders, self._with_one):
            group.pop(worker, None)
        if len(worker.tasks) == 1:
            self._busy_count += 1
            self._with_one[worker] = None
        if task.sticky is not None and worker.sticky is None and task.sticky not in self._holders:
            worker.sticky = task.sticky
            self._holders[task.sticky] = worker
            self._own[worker] = self._unclaimed.pop(task.sticky, deque())


def _earliest(*queues: deque[Task]) -> deque[Task]:
    """That of them whose first task came first; an empty one if all are."""
    return min(queues, key=lambda queue: queue[0].number if queue else sys.maxsize)
