"""The common part of dask and Ray: a scheduler runs the tasks, repeats tasks of lost workers, and may be gone.

A worker is checked by its first task (job.py).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from tokenmill.engines.engine import Engine, Notice, Task
from tokenmill.engines.errors import EngineFailure, EngineMissing
from tokenmill.errors import not_installed

CONNECT_SECONDS = 10
LOOK_SECONDS = 2.0  # between two requests for the number of workers


class ClusterEngine(Engine):
    """A cluster. `where` names it in messages. notice: takes a message while there are no workers.

    A subclass calls `_begin` when it is connected. `worker_count` is as of the last request, about two seconds ago.
    """

    silent_seconds: float  # without an answer, until a cluster counts as gone

    def __init__(self, where: str, notice: Notice) -> None:
        self._where, self._notice = where, notice
        self._tasks: dict[Task, Any] = {}  # futures of the cluster
        self.worker_count, self._has_workers = 1, True
        self._silent = 0.0  # seconds without an answer while this process ran
        self._last_check = time.monotonic()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="cluster", daemon=True)

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

    def _begin(self) -> None:
        self._look()
        self._thread.start()

    def _watch(self) -> None:
        """Ask for the workers again and again, in a thread: a request to a cluster that is gone may never return."""
        while not self._closed.wait(LOOK_SECONDS):
            with suppress(Exception):  # no answer
                self._look()

    def _look(self) -> None:
        had_workers, count = self._has_workers, self._count_workers()
        self.worker_count, self._has_workers = max(1, count), count > 0
        self._silent = 0.0
        if had_workers and not count:
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


def package_of(executor: str, name: str) -> Any:
    """Import the package of an engine; EngineMissing if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise EngineMissing(not_installed(f"--executor {executor}", name, executor)) from None
