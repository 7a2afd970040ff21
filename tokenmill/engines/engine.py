"""The interface between a command and the workers that run its tasks.

A task is a function call, and its result depends on its arguments alone. It may run twice or late, because it writes
files with unique names or identical bytes. An engine returns one result per task. Workers may join and leave at any
time. Tasks find the data of their job by a key (tokenmill/engines/job.py).
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from typing import Any, ClassVar

from tokenmill.errors import without_panic

Notice = Callable[[str], object]  # shows a message to the user; called in any thread


class Task(Future[Any]):
    """The future of a pickled call. name: for the dashboard of a cluster. done_bytes: the last report of the call."""

    done_bytes = 0

    def __init__(self, call: bytes, name: str) -> None:
        super().__init__()
        self.call, self.name = call, name

    def resolve(self, answer: tuple[bool, Any]) -> None:
        """Set the answer of `attempt`."""
        is_result, value = answer
        if is_result:
            self.set_result(value)
        else:
            self.set_exception(value)


class Engine(Executor):
    """A `concurrent.futures.Executor` with workers that may change.

    inherits: whether `start` passes its arguments to every worker; else all workers must be able to find them.
    worker_count: the number of tasks that can run at once now, at least 1.
    """

    inherits: ClassVar[bool] = False
    worker_count: int

    def start(self, max_tasks: int, prepare: Callable[..., Any], *arguments: Any) -> None:
        """Run prepare(*arguments) on every worker; its error is raised here or by the tasks.

        Call it once, before the first task. More than `max_tasks` workers would have no work.
        """

    def submit(self, fn: Callable[..., Any], /, *args: Any, name: Any = "", **kwargs: Any) -> Future[Any]:
        """Return a future for fn(*args, **kwargs), all picklable. It raises WorkerLost if its workers died.

        name: shown on the dashboard of a cluster (default: the name of the function).
        """
        task = Task(pickled(fn, *args, **kwargs), name or getattr(fn, "__name__", "task"))
        self._send(task)
        return task

    def _send(self, task: Task) -> None:
        """Start a task. Raise RuntimeError after `shutdown`."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise an error if nobody can run tasks any more. Called about twice per second."""

    def stop(self, running: Sequence[Future[Any]], seconds: float) -> None:
        """End after an error: start no other task, and give the running ones so many seconds."""
        self.shutdown(wait=False, cancel_futures=True)
        wait(running, seconds)
        self.kill()

    def kill(self) -> None:
        """End at once."""
        self.shutdown()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End when all tasks are done; without `wait`, only start no others. May be called again."""


class BorrowedEngine(Engine):
    """The caller's own executor, which runs `tasks_at_once` tasks and stays open."""

    def __init__(self, executor: Executor, tasks_at_once: int) -> None:
        self._executor, self.worker_count = executor, tasks_at_once

    def submit(self, fn: Callable[..., Any], /, *args: Any, name: Any = "", **kwargs: Any) -> Future[Any]:
        return self._executor.submit(fn, *args, **kwargs)

    def stop(self, running: Sequence[Future[Any]], seconds: float) -> None:
        """Wait for the running tasks, however long they take: nothing may be written after this returns."""
        wait(running)


def pickled(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> bytes:
    """Return a call as bytes for `attempt`."""
    return pickle.dumps(partial(function, *args, **kwargs), protocol=pickle.HIGHEST_PROTOCOL)


def attempt(call: bytes | Callable[[], Any]) -> tuple[bool, Any]:
    """Run a call in a worker, and return (True, result) or (False, error).

    So the errors that an engine raises are its own.
    """
    try:
        return True, (pickle.loads(call) if isinstance(call, bytes) else call)()
    except BaseException as error:
        error = without_panic(error)  # the class of a panic cannot be pickled
        error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
        return False, error
