"""The common part of dask and Ray: a scheduler runs the tasks, repeats tasks of lost workers, and may be gone.

A worker is checked by its first task (job.py).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

from tokenmill.engines.engine import Engine, Notice, Task
from tokenmill.engines.errors import EngineFailure

CONNECT_SECONDS = 10
LOOK_SECONDS = 2.0  # between two requests for the number of workers


class ClusterEngine(Engine):
    """A cluster. `where` names it in messages. notice: takes a message while there are no workers.

    A subclass calls `_begin` when it is connected.
    """

    silent_seconds: float  # without an answer, until a cluster counts as gone

    def __init__(self, where: str, notice: Notice) -> None:
        self._where, self._notice = where, notice
        self._tasks: dict[Task, Any] = {}  # futures of the cluster
        self._count = -1  # of workers; -1: unknown
        self._silent = 0.0  # seconds without an answer while this process ran
        self._last_check = time.monotonic()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cluster", daemon=True)

    @property
    def worker_count(self) -> int:
        """As of the last request, about two seconds ago."""
        return max(1, self._count)

    def _send(self, task: Task) -> None:
        if self._closed.is_set():
            raise RuntimeError("cannot schedule new futures after shutdown")
        task.set_running_or_notify_cancel()  # only the cluster knows whether it has started
        self._tasks[task] = future = self._submit(task)
        future.add_done_callback(partial(self._resolve, task))

    def check(self) -> None:
        """Raise EngineFailure if the cluster has not answered for a long time."""
        now = time.monotonic()
        self._silent += min(now - self._last_check, LOOK_SECONDS)  # this process may have been stopped
        self._last_check = now
        if self._silent >= self.silent_seconds:
            raise self._gone()

    def kill(self) -> None:
        """Cancel all tasks. A worker may finish its task, but its result is ignored."""
        self.shutdown()

    def _begin(self) -> None:
        self._look()
        self._thread.start()

    def _watch(self) -> None:
        """Ask for the workers again and again, in a thread: a request to a cluster that is gone may never return."""
        while not self._closed.wait(LOOK_SECONDS):
            with suppress(Exception):  # no answer
                self._look()

    def _look(self) -> None:
        before, self._count = self._count, self._count_workers()
        self._silent = 0.0
        if self._count == 0 != before:
            self._notice(f"{self._where}: waiting for workers")

    def _resolve(self, task: Task, future: Any) -> None:
        """Pass an answer on, in a thread of the cluster's package."""
        del self._tasks[task]
        try:
            task.resolve(future.result())
        except Exception as error:
            task.set_exception(self._translate(error))

    def _gone(self) -> EngineFailure:
        return EngineFailure(f"{self._where}: connection lost. Run the same command again to resume.")

    def _submit(self, task: Task) -> Any:
        """Run `attempt` on the call of a task, and return the cluster's future."""
        raise NotImplementedError

    def _count_workers(self) -> int:
        raise NotImplementedError

    def _translate(self, error: Exception) -> Exception:
        """Return our error for an error of the cluster."""
        raise NotImplementedError
