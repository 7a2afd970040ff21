"""Tasks on a Ray cluster whose nodes see inputs and output.

Ray does what a scheduler has to: a task is a remote function that is tried again where its worker or node is lost.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any

from tokenmill.engines.engine import Engine, Notice, attempt, package_of, pickled, settle
from tokenmill.engines.errors import EngineFailure, WorkerLost, cause_of

CONNECT_SECONDS = 10
CHECK_SECONDS = 60  # for all nodes to say that they can do the work
TRIES_AGAIN = 3  # of a task whose worker is lost
QUIET_SECONDS = 10.0  # without an answer of the cluster
GIVEN_UP_SECONDS = (
    50.0  # a cluster so long silent is gone: after 60 Ray ends this process, with its own exit code
)
_LOOK_SECONDS = 2.0


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Ray puts a handler in place of the process's, which ends it by another exit code and without a word."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)


class RayEngine(Engine):
    """The cluster at `address` ("host:port", "ray://host:port", "auto": the one that runs on this machine); the one
    that this process is connected to already, if any. EngineFailure if there is none.

    notice: of nodes that are lost, and of a head that does not answer.
    """

    def __init__(self, address: str, notice: Notice) -> None:
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
        self._silent = 0.0  # seconds without an answer, while this process ran
        self._last_check = time.monotonic()
        self._closed = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._watch, name="ray-nodes", daemon=True)
        self._thread.start()

    @property
    def worker_count(self) -> int:
        """CPUs of all nodes, as seen a moment ago."""
        return self._worker_count

    def start(self, most_tasks: int, prepare: Callable[..., None], *arguments: Any) -> None:
        """Have a worker on each node do prepare(*arguments); the first error is raised."""
        strategy = package_of("ray", "ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        call = pickled(prepare, *arguments)
        # Not by ray.get, which makes a plain KeyboardInterrupt of the exception of any signal.
        answers = [
            self._attempt.options(num_cpus=0, scheduling_strategy=strategy(node, soft=False))
            .remote(call)
            .future()
            for node in self._nodes
        ]
        try:
            for answer in wait(answers, CHECK_SECONDS).done:
                good, error = answer.result()
                if not good:
                    raise error
        except self._ray.exceptions.RayError as error:
            raise EngineFailure(
                f"Ray cluster {self._address}: some nodes cannot run tokenmill: {cause_of(error)}"
            ) from None
        if not all(answer.done() for answer in answers):
            raise EngineFailure(
                f"Ray cluster {self._address}: some nodes did not answer within {CHECK_SECONDS} s. Stop nodes that "
                f"hang."
            )

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, sticky: Hashable = None, **kwargs: Any
    ) -> Future[Any]:
        """See Engine."""
        if self._closed.is_set():
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # whether it has begun is known to Ray alone
        self._open[future] = reference = self._attempt.remote(pickled(fn, *args, **kwargs))
        reference.future().add_done_callback(lambda answer: self._settle(future, answer))
        return future

    def check(self) -> None:
        """EngineFailure if the cluster has not answered for long."""
        now, before = time.monotonic(), self._silent
        self._silent += min(now - self._last_check, _LOOK_SECONDS)
        self._last_check = now
        if self._silent >= GIVEN_UP_SECONDS:
            raise EngineFailure(
                f"Ray cluster {self._address}: no answer for {self._silent:.0f} s. Run the same command again to "
                f"resume."
            )
        if before < QUIET_SECONDS <= self._silent:
            self._notice(
                f"warning: Ray cluster {self._address}: no answer, waiting for at most {GIVEN_UP_SECONDS:.0f} s",
                waits=True,
            )

    def stop(self, seconds: float) -> None:
        """What is not done in so many seconds is ended."""
        if self._silent < GIVEN_UP_SECONDS:
            wait(list(self._open), seconds)
        self.kill()

    def kill(self) -> None:
        """See Engine."""
        for reference in list(self._open.values()) if self._silent < QUIET_SECONDS else ():
            with suppress(Exception):
                self._ray.cancel(reference, force=True)
        self.shutdown()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let go of the cluster. Ray's own waits for one that does not answer, so it is left out there."""
        self._closed.set()
        self._thread.join(_LOOK_SECONDS)
        if self._is_own and not self._thread.is_alive():
            self._is_own = False
            self._ray.shutdown()

    def _connect(self) -> None:
        host, _, port = self._address.removeprefix("ray://").rpartition(":")
        try:
            if host:  # Ray itself would try much longer
                with socket.create_connection((host, int(port)), CONNECT_SECONDS):
                    pass
            with _own_sigterm():
                level = logging.getLogger("ray").level  # without it Ray sets its own
                self._ray.init(self._address, log_to_driver=False, logging_level=level)
        except (OSError, ValueError, RuntimeError) as error:
            raise EngineFailure(f"Ray cluster {self._address}: cannot connect: {cause_of(error)}") from None

    def _watch(self) -> None:
        """What the thread does: look who is there, where Ray waits without end if the head is gone."""
        while not self._closed.wait(_LOOK_SECONDS):
            with suppress(Exception):  # no answer
                self._look()

    def _look(self) -> None:
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        seen = {node["NodeID"] for node in alive}
        if lost := self._nodes - seen:
            self._notice(
                f"warning: Ray cluster {self._address}: lost {len(lost)} of {len(self._nodes)} nodes. The others redo "
                "their tasks."
            )
        self._silent, self._nodes = 0.0, seen
        self._worker_count = max(1, int(sum(node["Resources"].get("CPU", 0) for node in alive)))

    def _settle(self, future: Future[Any], answer: Future[Any]) -> None:
        del self._open[future]
        try:
            settle(future, *answer.result())
        except self._ray.exceptions.RayError as error:
            future.set_exception(WorkerLost(f"Ray gave up a task: {cause_of(error).partition('. ')[0]}"))
        except Exception as error:
            future.set_exception(error)
