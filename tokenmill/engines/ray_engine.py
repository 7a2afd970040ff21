"""Tasks on a Ray cluster. All nodes must see the inputs and the output."""

from __future__ import annotations

import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from tokenmill.engines.cluster_engine import CONNECT_SECONDS, LOOK_SECONDS, ClusterEngine, package_of
from tokenmill.engines.engine import Notice, Task, attempt
from tokenmill.engines.errors import EngineFailure, WorkerLost, cause_of


class RayEngine(ClusterEngine):
    """A Ray cluster; EngineFailure if there is none.

    address: "host:port", "ray://host:port", or "auto" for a cluster on this machine. Ignored in a process that is
    already connected to a cluster.
    notice: takes a message while there are no workers.
    options: arguments of Ray's `options` for each task, such as num_cpus, resources and max_retries.
    """

    silent_seconds = 50.0  # after 60 s Ray ends this process

    def __init__(self, address: str, notice: Notice, options: Mapping[str, Any]) -> None:
        self._ray = package_of("ray", "ray")
        super().__init__(f"Ray cluster {address}", notice)
        self._is_own = not self._ray.is_initialized()
        if self._is_own:
            self._connect(address)
        # A task that fails returns its error, so Ray repeats only the tasks of lost workers.
        self._options = {"max_retries": 3, "num_cpus": 1, **options}
        self._attempt = self._ray.remote(attempt)
        self._begin()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel the tasks that are not done, and disconnect unless this process was connected before."""
        if not wait:
            return
        self._closed.set()
        self._thread.join(LOOK_SECONDS)
        if self._thread.is_alive():  # the cluster is gone, and Ray would wait for it too
            return
        for future in list(self._tasks.values()):
            with suppress(Exception):
                self._ray.cancel(future.object_ref, force=True)
        if self._is_own:
            self._is_own = False
            self._ray.shutdown()

    def _connect(self, address: str) -> None:
        place = urlsplit(f"//{address.removeprefix('ray://')}")  # understands [::1]:6379
        handler = signal.getsignal(signal.SIGTERM)
        try:
            if place.port is not None:  # Ray itself would try for much longer
                socket.create_connection((place.hostname, place.port), CONNECT_SECONDS).close()
            self._ray.init(address, configure_logging=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise EngineFailure(f"{self._where}: cannot connect: {cause_of(error)}") from None
        finally:
            with suppress(ValueError, TypeError):  # not the main thread; a handler of native code
                signal.signal(signal.SIGTERM, handler)  # Ray's own ends the process without a message

    def _submit(self, task: Task) -> Any:
        return self._attempt.options(name=task.name, **self._options).remote(task.call).future()

    def _count_workers(self) -> int:
        """Return the number of CPUs of all nodes."""
        return int(sum(node["Resources"].get("CPU", 0) for node in self._ray.nodes() if node["Alive"]))

    def _translate(self, error: Exception) -> Exception:
        if isinstance(error, self._ray.exceptions.RayError):
            return WorkerLost(f"Ray gave up a task: {cause_of(error).partition('. ')[0]}")
        return error
