"""Tasks on a dask cluster. All workers must see the inputs and the output."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from tokenmill.engines.cluster_engine import CONNECT_SECONDS, ClusterEngine, package_of
from tokenmill.engines.engine import Notice, Task, attempt, pickled
from tokenmill.engines.errors import EngineFailure, WorkerLost, cause_of

CHECK_SECONDS = 60  # for all workers to answer


class DaskEngine(ClusterEngine):
    """A dask cluster; EngineFailure if its scheduler does not answer within CONNECT_SECONDS.

    cluster: address of the scheduler, or a `distributed.Client`, which stays open.
    notice: takes a message while there are no workers.
    options: arguments of `Client.submit`, such as resources, retries and priority.
    """

    silent_seconds = 300.0

    def __init__(self, cluster: Any, notice: Notice, options: Mapping[str, Any]) -> None:
        distributed = package_of("dask", "distributed")
        self._client, self._options = cluster, options
        self._is_own = isinstance(cluster, str)
        address = cluster if self._is_own else cluster.scheduler.address
        super().__init__(f"dask scheduler {address}", notice)
        if self._is_own:
            try:
                self._client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError) as error:
                raise EngineFailure(f"{self._where}: cannot connect: {cause_of(error)}") from None
        elif cluster.asynchronous:
            raise TypeError("executor: must be a synchronous distributed.Client")
        self._killed_worker = distributed.KilledWorker
        self._begin()

    def start(self, max_tasks: int, prepare: Callable[..., None], *arguments: Any) -> None:
        """Run prepare(*arguments) on all connected workers, and raise the first error.

        A worker without this package would die of any task, and dask would wait for another one. Workers that connect
        later are checked by their first task.
        """
        call = pickled(prepare, *arguments)
        try:
            answers = self._client.run(attempt, call, on_error="return", callback_timeout=CHECK_SECONDS)
        except OSError:
            raise EngineFailure(
                f"{self._where}: some workers did not answer within {CHECK_SECONDS} s. Stop workers that hang."
            ) from None
        for worker, answer in answers.items():
            if isinstance(answer, tuple) and not answer[0]:
                raise answer[1]
            if isinstance(answer, BaseException) and not isinstance(answer, OSError):  # else it has left
                raise _unable(f"dask worker {worker}", answer)

    def check(self) -> None:
        if not self._closed.is_set() and self._client.status == "closed":
            raise self._gone()
        super().check()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel the tasks that are not done, and disconnect unless the client is the caller's."""
        if not wait or self._closed.is_set():
            return
        self._closed.set()
        with suppress(Exception):  # the scheduler may be gone
            if self._is_own:
                self._client.close(timeout=CONNECT_SECONDS)
            else:
                self._client.cancel(list(self._tasks.values()))

    def _submit(self, task: Task) -> Any:
        # The dashboard groups tasks by their key up to the first number.
        return self._client.submit(attempt, task.call, key=f"{task.name}-{uuid.uuid4().hex}", **self._options)

    def _count_workers(self) -> int:
        return sum(self._client.nthreads(callback_timeout=CONNECT_SECONDS).values())

    def _translate(self, error: Exception) -> Exception:
        if isinstance(error, self._killed_worker):
            worker = error.last_worker.address
            return WorkerLost(f"dask worker {worker}: last of {error.allowed_failures + 1} workers that died")
        if isinstance(error, ImportError):  # errors of the task itself are in its answer
            return _unable("dask worker", error)
        # dask cancels all tasks when it loses the scheduler.
        return self._gone() if isinstance(error, (OSError, CancelledError)) else error


def _unable(worker: str, error: BaseException) -> EngineFailure:
    """Return the error for a worker that cannot import this package."""
    cause = cause_of(error)
    return EngineFailure(f"{worker}: cannot run tokenmill: {cause}. Install the same version on all workers.")
