"""Many tasks on one engine: results as they come, retries, and the first other error ends it all.

A task that fails with a transient error (`is_transient`, such as a store that answers 503) runs again after a delay
that doubles with each failure. Half of the delay is random, so that workers do not return to a busy store all at once.
Engines themselves retry the tasks of lost workers.

After an error, or the first Ctrl-C, SIGTERM or SIGHUP, workers have a few seconds to finish their tasks, so that little
work is lost. The second signal ends them at once. No task runs when the pool is closed.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, TypeVar

from tokenmill.engines.choose import RETRIES
from tokenmill.engines.engine import Engine, Notice
from tokenmill.engines.errors import WorkerLost
from tokenmill.errors import with_sentence

SHOW_SECONDS = 0.5  # between two updates of the progress of running tasks
RETRY_SECONDS = 5.0  # before the first retry
MAX_RETRY_SECONDS = 120.0
GRACE_SECONDS = 3.0

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(eq=False)
class _Call:
    """A task, its name in errors, and how to submit it. due: time of its next retry."""

    task: Any
    describe: Callable[[], str]
    submit: Callable[[], Future[Any]]
    failures: int = 0
    due: float = 0.0


class TaskPool:
    """Tasks on an engine. As a context manager it ends the engine.

    retries: how often a task may run again. notice: takes messages on delayed tasks and on the end of a run.
    """

    def __init__(self, engine: Engine, retries: int = RETRIES, notice: Notice = lambda text: None) -> None:
        self.engine = engine
        self._retries, self._notice = retries, notice
        self._calls: dict[Future[Any], _Call] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self._delayed: list[_Call] = []

    def __enter__(self) -> TaskPool:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.engine.shutdown(cancel_futures=True)
            return
        with suppress(Exception):  # the error that ended the run is the one to report
            try:
                running = [future for future in self._calls if not future.cancel()]
                if isinstance(error, KeyboardInterrupt):
                    grace = f"workers have {GRACE_SECONDS:g} s to finish"
                    self._notice(f"stopping: {grace}. Interrupt again to stop at once.")
                self.engine.stop(running, GRACE_SECONDS)
            except KeyboardInterrupt:  # the second one, which may arrive during the notice
                self.engine.kill()

    def __len__(self) -> int:
        return len(self._calls) + len(self._delayed)

    def submit(
        self, task: Any, describe: Callable[[], str], function: Callable[..., Any], *args: Any, name: str = ""
    ) -> None:
        """Start function(*args).

        task: returned with the result.
        describe: returns the name of the task for error messages.
        name: name on the dashboard of a cluster.
        """
        self._submit(_Call(task, describe, partial(self.engine.submit, function, *args, name=name)))

    def done(self, seconds: float | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (task, result) of finished tasks, after waiting for the first one at most this long."""
        left, is_waiting = math.inf if seconds is None else seconds, True
        end = time.monotonic() + left
        while is_waiting:
            self.engine.check()
            for call in [call for call in self._delayed if call.due <= time.monotonic()]:
                self._delayed.remove(call)
                self._submit(call)
            for future in self._finished(min(SHOW_SECONDS, max(0.0, left))):
                call = self._calls.pop(future)
                try:
                    result = future.result()
                except Exception as error:
                    self._delay_or_raise(call, error)
                else:
                    is_waiting = False
                    yield call.task, result
            left = end - time.monotonic()
            is_waiting = is_waiting and left > 0

    def run(
        self,
        function: Callable[[_T], _R],
        tasks: Iterable[_T],
        window: int,
        describe: Callable[[_T], str],
        show: Callable[[int], None] = lambda done_bytes: None,
    ) -> Iterator[tuple[_T, _R]]:
        """Yield (task, result) of function(task) for all tasks, with at most `window` of them in flight.

        The pool must have no other tasks. show: takes the bytes done by the tasks in flight, about twice per second.
        """
        remaining = iter(tasks)
        while True:
            for task in islice(remaining, window - len(self)):
                self.submit(task, partial(describe, task), function, task)
            if not len(self):
                return
            yield from self.done(SHOW_SECONDS)
            show(sum(done for _, done in self.running()))

    def finished(self) -> Iterator[tuple[Any, Any]]:
        """Yield (task, result) of tasks that succeeded after an error ended `done`, without waiting."""
        for future, call in self._calls.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield call.task, future.result()

    def running(self) -> Iterator[tuple[Any, int]]:
        """Yield (task, bytes done) of unfinished tasks; 0 bytes if the engine does not know."""
        for future, call in self._calls.items():
            yield call.task, getattr(future, "done_bytes", 0)

    def _submit(self, call: _Call) -> None:
        try:
            future = call.submit()
        except RuntimeError as error:  # the executor is broken, or was shut down
            _raise(call, BrokenExecutor(str(error)))
        self._calls[future] = call
        future.add_done_callback(self._done.put)

    def _finished(self, seconds: float) -> Iterator[Future[Any]]:
        """Yield finished futures, after waiting for the first one. Those that are not taken stay in the queue."""
        with suppress(Empty):
            yield self._done.get(timeout=seconds)
            while True:
                yield self._done.get_nowait()

    def _delay_or_raise(self, call: _Call, error: Exception) -> None:
        if not getattr(error, "is_transient", False) or call.failures >= self._retries:
            _raise(call, error)
        delay = min(RETRY_SECONDS * 2**call.failures, MAX_RETRY_SECONDS) * random.uniform(0.5, 1)
        call.failures += 1
        call.due = time.monotonic() + delay
        if not self._delayed:  # one warning for all tasks while a store is down
            self._notice(with_sentence(f"warning: {error}", f"Retrying in {delay:.0f} s."))
        self._delayed.append(call)


def _raise(call: _Call, error: Exception) -> NoReturn:
    """Raise the error of a task, with the name of the task if the message does not say what failed."""
    if isinstance(error, (BrokenExecutor, CancelledError)):
        cause = str(error) or "the executor cancelled a task"
        raise WorkerLost(
            f"{cause} while processing {call.describe()}. Run the same command again to resume, with fewer "
            "--workers if memory is short."
        ) from error
    if not hasattr(error, "exit_code") and not isinstance(error, (OSError, ImportError, MemoryError)):
        error.add_note(f"while a worker processed {call.describe()}")
    raise error
