"""Tasks on a Ray cluster whose nodes see inputs and output.

Ray does what a scheduler has to: a task is a remote function that is tried again where its worker or node is lost.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

from engines.engine import Engine, attempt, package_of, pickled, settle
from engines.errors import EngineFailure, WorkerLost, cause_of

CONNECT_SECONDS = 10
CHECK_SECONDS = 60  # for all nodes to say that they can do the work
TRIES_AGAIN = 3  # of a task whose worker is lost
_LOOK_SECONDS = 2.0


class RayEngine(Engine):
    """The cluster at `address` ("host:port", "ray://host:port", "auto": the one that runs on this machine); the one
    that this process is connected to already, if any. EngineFailure if there is none.

    notice(text) is called when nodes are lost.
    """

    def __init__(self, address: str, notice: Callable[[str], None]) -> None:
        self._ray = package_of("ray", "ray")
        self._address, self._notice = address, notice
        self._is_own = not self._ray.is_initialized()
        if self._is_own:
            self._connect()
        # A task that fails is answered; only one that is lost is tried again.
        self._attempt = self._ray.remote(max_retries=TRIES_AGAIN, num_cpus=1)(attempt)
        self._open: dict[Future[Any], Any] = {}  # Ray's reference by future
        self._nodes: set[str] = set()
        self._worker_count = 1
        self._is_closed = False
        self._look()

    @property
    def worker_count(self) -> int:
        """CPUs of all nodes, as seen a moment ago."""
        return self._worker_count

    def start(self, most_tasks: int, prepare: Callable[..., None], *arguments: Any) -> None:
        """Have a worker on each node do prepare(*arguments); the first error is raised."""
        strategy = package_of("ray", "ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        call = pickled(prepare, *arguments)
        answers = [
            self._attempt.options(num_cpus=0, scheduling_strategy=strategy(node, soft=False)).remote(call)
            for node in self._nodes
        ]
        try:
            for good, error in self._ray.get(answers, timeout=CHECK_SECONDS):
                if not good:
                    raise error
        except self._ray.exceptions.RayError as error:
            raise EngineFailure(
                f"not all nodes of the Ray cluster at {self._address} can run tokenmill: {cause_of(error)}"
            ) from None

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, sticky: Hashable = None, **kwargs: Any
    ) -> Future[Any]:
        """See Engine."""
        if self._is_closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # whether it has begun is known to Ray alone
        self._open[future] = reference = self._attempt.remote(pickled(fn, *args, **kwargs))
        reference.future().add_done_callback(lambda answer: self._settle(future, answer))
        return future

    def check(self) -> None:
        """Look who is there."""
        if time.monotonic() >= self._next_look:
            self._look()

    def stop(self, seconds: float) -> None:
        """What is not done in so many seconds is ended."""
        wait(list(self._open), seconds)
        self.kill()

    def kill(self) -> None:
        """See Engine."""
        for reference in list(self._open.values()):
            with suppress(Exception):
                self._ray.cancel(reference, force=True)
        self.shutdown()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let go of the cluster."""
        self._is_closed = True
        if self._is_own:
            self._is_own = False
            self._ray.shutdown()

    def _connect(self) -> None:
        host, _, port = self._address.removeprefix("ray://").rpartition(":")
        try:
            if host:  # Ray itself would try much longer
                with socket.create_connection((host, int(port)), CONNECT_SECONDS):
                    pass
            self._ray.init(self._address, log_to_driver=False, logging_level="CRITICAL")
        except (OSError, ValueError, RuntimeError) as error:
            raise EngineFailure(f"no Ray cluster answers at {self._address}: {cause_of(error)}") from None

    def _look(self) -> None:
        self._next_look = time.monotonic() + _LOOK_SECONDS
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        seen = {node["NodeID"] for node in alive}
        if lost := self._nodes - seen:
            self._notice(
                f"warning: {len(lost)} of {len(self._nodes)} Ray nodes are gone; others do their tasks"
            )
        self._nodes = seen
        self._worker_count = max(1, int(sum(node["Resources"].get("CPU", 0) for node in alive)))

    def _settle(self, future: Future[Any], answer: Future[Any]) -> None:
        del self._open[future]
        try:
            settle(future, *answer.result())
        except self._ray.exceptions.RayError as error:
            future.set_exception(WorkerLost(f"Ray gave a task up: {cause_of(error).partition('. ')[0]}"))
        except Exception as error:
            future.set_exception(error)
