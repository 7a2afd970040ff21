"""Chooses the engine of a command, from its options or from the caller's executor. Other engines are not imported."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Final

from tokenmill.engines.engine import BorrowedEngine, Engine, Notice
from tokenmill.errors import BadArgument

EXECUTORS: Final = ("process", "dask", "ray")
START_METHODS: Final = ("auto", "fork", "spawn", "forkserver")
STALL_SECONDS: Final = 300.0
RETRIES: Final = 3
MAX_WORKERS: Final = 4096


@dataclass(frozen=True)
class EngineOptions:
    """Where tasks run.

    executor: process, dask, ray, a `distributed.Client`, or any executor of `concurrent.futures`.
    workers: number of processes, or of tasks that a caller's executor runs at once.
    scheduler: address of the dask scheduler.
    address: address of the Ray cluster; auto: a running one.
    start_method, stall_seconds: see ProcessEngine.
    retries: how often a task runs again after a transient error (tokenmill/engines/tasks.py).
    executor_options: for each task: keyword arguments of dask's `Client.submit` or of Ray's `options`.
    """

    executor: Any = "process"
    workers: int = 1
    scheduler: str = ""
    address: str = ""
    start_method: str = "auto"
    stall_seconds: float = STALL_SECONDS
    retries: int = RETRIES
    executor_options: Mapping[str, Any] = field(default_factory=dict)


def check_engine(executor: Any, workers: Any, scheduler: Any, address: Any) -> None:
    """Raise BadArgument, which names the flag, for options that do not go together. workers: None if not given."""
    if executor not in EXECUTORS:
        raise BadArgument(f"--executor: must be one of {', '.join(EXECUTORS)} (got {executor!r})")
    for flag, value, needed_by in (("--scheduler", scheduler, "dask"), ("--address", address, "ray")):
        if value and executor != needed_by:
            raise BadArgument(f"{flag}: requires --executor {needed_by}")
        if not value and executor == needed_by:
            raise BadArgument(f"--executor {needed_by}: requires {flag} ADDRESS")
    if isinstance(workers, int) and not 1 <= workers <= MAX_WORKERS:
        raise BadArgument(f"--workers: must be an integer from 1 to {MAX_WORKERS} (got {workers})")
    if executor != "process" and workers is not None:
        raise BadArgument(
            f"--workers: not supported with --executor {executor}, which sets the number of workers"
        )


def executor_of(executor: str | None, scheduler: str, address: str) -> str | None:
    """Return the executor that a command line selects: --executor, else dask with --scheduler, Ray with --address."""
    return executor or ("dask" if scheduler else "ray" if address else None)


def engine_of(given: Any, default_workers: int) -> EngineOptions:
    """Return the engine that options or parsed arguments select (tokenmill/cli/shared_arguments.py, `add_engine`)."""
    executor = executor_of(given.executor, given.scheduler, given.address) or "process"
    check_engine(executor, given.workers, given.scheduler, given.address)
    workers = given.workers or default_workers
    addresses = given.scheduler, given.address
    return EngineOptions(executor, workers, *addresses, given.start_method, given.stall_timeout)


def quiet_loggers(executor: str) -> None:
    """Disable logging, for commands on dask or Ray: they report a lost cluster on one line, the packages on dozens."""
    if executor in ("dask", "ray"):
        logging.disable()


def open_engine(options: EngineOptions, notice: Notice) -> Engine:
    """Return an engine that is connected to its cluster, if any, but not started.

    EngineFailure if there is no connection. notice: takes messages about the workers.
    """
    executor, arguments = options.executor, options.executor_options
    distributed = sys.modules.get("distributed")  # imported by a caller that has a client
    if isinstance(executor, Engine):
        return executor
    if executor == "dask" or (distributed is not None and isinstance(executor, distributed.Client)):
        from tokenmill.engines.dask_engine import DaskEngine

        return DaskEngine(options.scheduler if executor == "dask" else executor, notice, arguments)
    if executor == "ray":
        from tokenmill.engines.ray_engine import RayEngine

        return RayEngine(options.address, notice, arguments)
    if arguments:
        raise BadArgument("executor_options: requires dask or Ray")
    if isinstance(executor, Executor):
        return BorrowedEngine(executor, options.workers)
    if executor != "process":
        raise TypeError(
            f"executor: must be {', '.join(EXECUTORS)}, a distributed.Client or an Executor of concurrent.futures "
            f"(got {executor!r})"
        )
    from tokenmill.engines.process_engine import ProcessEngine

    stall_seconds = options.stall_seconds
    return ProcessEngine(options.workers, options.start_method, notice=notice, stall_seconds=stall_seconds)
