"""What commands ask of whatever runs their tasks, and what it may ask where that can do more.

A task is pure: a function and arguments in, a result out, files under names of its own or with bytes that are the same
whoever writes them. So it may run twice, late, or beside itself, and an engine only has to give one result of each.
Workers come and go. What a worker keeps is its thread's, what all tasks of a job share is found by a key
(tokenmill/engines/job.py).
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future, wait
from importlib import import_module
from typing import Any, ClassVar, Protocol

from tokenmill.engines.errors import EngineMissing
from tokenmill.errors import not_installed, without_panic


class Notice(Protocol):
    """Tells a person something, and may be called in any thread. waits: nothing goes on until a cluster is as it was,
    which is told those, too, who want to hear nothing else."""

    def __call__(self, text: str, waits: bool = False) -> None: ...


class Engine(Executor):
    """A `concurrent.futures.Executor` whose workers may be others a minute later.

    can_stick: it heeds `sticky`. inherits: `start` hands its arguments to each worker, by fork where that is possible;
    else they must be found by all of a cluster.
    """

    can_stick: ClassVar[bool] = False
    inherits: ClassVar[bool] = False

    @property
    def worker_count(self) -> int:
        """How many tasks it can run at once, as far as is known now; at least 1."""
        raise NotImplementedError

    def start(self, most_tasks: int, prepare: Callable[..., None], *arguments: Any) -> None:
        """Have prepare(*arguments) done by each worker that there is; its error is raised here or by the tasks.

        To be called once, before the first task. most_tasks: there is work for so many workers and no more.
        """

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, sticky: Hashable = None, **kwargs: Any
    ) -> Future[Any]:
        """A future for fn(*args, **kwargs), all of it picklable; WorkerLost if the workers did not survive it.

        sticky: where the engine `can_stick`, the task goes to the worker that had the last one with this key, which
        gets none with another key until `release`. The task must know by itself whether it can go on from that one.
        """
        raise NotImplementedError

    def release(self, key: Hashable) -> None:
        """No other task with this key comes."""

    def check(self) -> None:
        """Raise what is wrong if nobody is there to answer; called now and then while tasks are waited for."""

    def stop(self, seconds: float) -> None:
        """End after an error: tasks in work have so many seconds, what has not begun is not begun."""
        raise NotImplementedError

    def kill(self) -> None:
        """End without waiting for anything."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End when all is done. May be called again."""


class BorrowedEngine(Engine):
    """The caller's own executor, which is left as it is: only the tasks given to it here are ended.

    tasks_at_once: how many it runs.
    """

    def __init__(self, executor: Executor, tasks_at_once: int) -> None:
        self._executor = executor
        self._tasks_at_once = tasks_at_once
        self._open: set[Future[Any]] = set()

    @property
    def worker_count(self) -> int:
        """As many as the caller says."""
        return self._tasks_at_once

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, sticky: Hashable = None, **kwargs: Any
    ) -> Future[Any]:
        """See Engine."""
        future = self._executor.submit(fn, *args, **kwargs)
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        return future

    def stop(self, seconds: float) -> None:
        """Wait for all that has begun, however long: nobody here can end it, and nothing may be written later."""
        begun = [future for future in list(self._open) if not future.cancel()]
        wait(begun)


def package_of(executor: str, name: str) -> Any:
    """The package that an engine needs, which not everybody has."""
    try:
        return import_module(name)
    except ImportError:
        raise EngineMissing(not_installed(f"--executor {executor}", name, executor)) from None


def pickled(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> bytes:
    """A call for `attempt`."""
    return pickle.dumps((function, args, kwargs), protocol=pickle.HIGHEST_PROTOCOL)


def attempt(call: bytes) -> tuple[bool, Any]:
    """What a worker does: (True, result) or (False, error) of a call. So all that an engine raises is its own."""
    try:
        function, args, kwargs = pickle.loads(call)
        return True, function(*args, **kwargs)
    except BaseException as error:
        error = without_panic(error)  # the class of a panic cannot be pickled
        error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
        return False, error


def settle(future: Future[Any], good: bool, value: Any) -> None:
    """Give a future what `attempt` came to."""
    if good:
        future.set_result(value)
    else:
        future.set_exception(value)
