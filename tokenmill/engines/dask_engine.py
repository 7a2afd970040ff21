"""Tasks on a dask cluster: any scheduler that listens at an address, with workers that see inputs and output.

dask does what a scheduler has to: it gives tasks to workers, and those of a worker that is lost to others. Its client
and its tasks are used as they are; a thread here takes results as they come, and looks who is there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from typing import Any

from tokenmill.engines.dask_watch import CONNECT_SECONDS, DaskWatch
from tokenmill.engines.engine import Engine, Notice, attempt, package_of, pickled, settle
from tokenmill.engines.errors import EngineFailure, WorkerLost, cause_of

CHECK_SECONDS = 60  # for all workers to say that they can do the work
_TRIES = 4  # to fetch results, while the scheduler is there


class DaskEngine(Engine):
    """The cluster of the scheduler at `address`; EngineFailure if none answers there within CONNECT_SECONDS.

    notice: of workers that are lost, and of what holds up the work (tokenmill/engines/dask_watch.py).
    """

    def __init__(self, address: str, notice: Notice) -> None:
        distributed = package_of("dask", "distributed")
        self._address = address
        try:
            self._client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EngineFailure(f"dask scheduler {address}: cannot connect: {cause_of(error)}") from None
        self._killed_worker = distributed.KilledWorker
        self._watch = DaskWatch(self._client, address, notice)
        self._watch.look()
        self._done = distributed.as_completed(loop=self._client.loop)
        self._futures: dict[Any, Future[Any]] = {}  # by dask's
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._collect, name="dask-results", daemon=True)
        self._thread.start()

    @property
    def worker_count(self) -> int:
        """Threads of all workers, as seen a moment ago."""
        return max(1, sum(self._watch.threads.values()))

    def start(self, most_tasks: int, prepare: Callable[..., None], *arguments: Any) -> None:
        """Have each worker that is there do prepare(*arguments); the first error is raised.

        One that goes away meanwhile is not missed, and one that comes back is asked by its first task."""
        call = pickled(prepare, *arguments)
        try:
            found = self._client.run(attempt, call, on_error="return", callback_timeout=CHECK_SECONDS)
        except OSError:
            raise EngineFailure(
                f"dask scheduler {self._address}: some workers did not answer within {CHECK_SECONDS} s. Stop workers "
                f"that hang."
            ) from None
        for worker, answer in found.items():
            if isinstance(answer, OSError):  # the connection broke off
                continue
            if isinstance(answer, BaseException):
                raise EngineFailure(
                    f"dask worker {worker}: cannot run tokenmill: {cause_of(answer)}. Install the same version on all "
                    f"workers."
                )
            good, error = answer
            if not good:
                raise error

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, sticky: Hashable = None, **kwargs: Any
    ) -> Future[Any]:
        """See Engine."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # whether it has begun is known to the scheduler alone
        with self._changed:
            if self._is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            # Not pure: the same call is a task of its own, and is done again.
            task = self._client.submit(attempt, pickled(fn, *args, **kwargs), pure=False)
            self._futures[task] = future
            self._done.add(task)
            self._changed.notify()
        return future

    def check(self) -> None:
        """Look who is there; EngineFailure if the scheduler is gone, or does not answer for long."""
        if not self._is_closed and (self._client.status == "closed" or not self._thread.is_alive()):
            raise self._gone()
        self._watch.look()

    def stop(self, seconds: float) -> None:
        """What is not done in so many seconds is cancelled. A worker ends the task that it is at all the same; what it
        writes counts for nothing."""
        wait(list(self._futures.values()), seconds)
        self.shutdown()

    def kill(self) -> None:
        """See Engine."""
        self.shutdown()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let go of the scheduler, which cancels what is not done."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._done.clear()
            self._changed.notify()
        with suppress(Exception):  # it may be gone
            self._client.close(timeout=CONNECT_SECONDS)

    def _gone(self) -> EngineFailure:
        return EngineFailure(
            f"dask scheduler {self._address}: connection lost. Run the same command again to resume."
        )

    def _collect(self) -> None:
        """What the thread does: results to their futures."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._futures or self._is_closed)
                if self._is_closed:
                    return
            with suppress(StopIteration):  # closed meanwhile
                finished = []
                for task in self._done.next_batch():
                    if task.status == "finished":
                        finished.append(task)
                    else:
                        self._futures.pop(task).set_exception(self._error_of(task))
                self._take(finished)

    def _take(self, tasks: list[Any]) -> None:
        """Give the results of finished tasks to their futures."""
        for turn in range(_TRIES):
            try:
                for task, (good, value) in zip(tasks, self._client.gather(tasks), strict=True):
                    settle(self._futures.pop(task), good, value)
                self._watch.moved()
                return
            except Exception as error:
                if turn == _TRIES - 1 or self._client.status != "running":
                    for task in tasks:
                        if (future := self._futures.pop(task, None)) is not None:
                            is_gone = isinstance(error, (OSError, CancelledError))
                            future.set_exception(self._gone() if is_gone else error)
                    return
            time.sleep(turn)

    def _error_of(self, task: Any) -> BaseException:
        if task.status != "error":  # cancelled, as all are when the connection ends
            return self._gone()
        error: BaseException = task.exception()
        if not isinstance(error, self._killed_worker):
            return error
        return WorkerLost(
            f"dask worker {error.last_worker.address}: last of {error.allowed_failures + 1} workers that died"
        )
