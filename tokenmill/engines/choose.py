"""Which engine a command has, by its options or the caller's executor. Other engines are not imported."""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tokenmill.engines.engine import BorrowedEngine, Engine, Notice

EXECUTORS: Final = ("process", "dask", "ray")
START_METHODS: Final = ("auto", "fork", "spawn", "forkserver")
STALL_SECONDS: Final = 300.0


@dataclass(frozen=True)
class EngineOptions:
    """executor: "process", `workers` processes of this machine; "dask", the cluster with the scheduler at the address
    `scheduler`; "ray", the cluster at `address` ("auto": a running one). Or any executor of `concurrent.futures`,
    which runs `workers` tasks at a time and stays open. start_method, stall_seconds: see ProcessEngine.
    """

    executor: str | Executor = "process"
    workers: int = 1
    scheduler: str = ""
    address: str = ""
    start_method: str = "auto"
    stall_seconds: float = STALL_SECONDS


def check_engine(executor: Any, workers: Any, scheduler: Any, address: Any) -> None:
    """ValueError that names the flag for options that do not go together; workers None: not given."""
    if executor not in EXECUTORS:
        raise ValueError(f"--executor: must be one of {', '.join(EXECUTORS)} (got {executor!r})")
    for flag, value, needed_by in (("--scheduler", scheduler, "dask"), ("--address", address, "ray")):
        if not isinstance(value, str):
            raise ValueError(f"{flag}: must be an address (got {value!r})")
        if value and executor != needed_by:
            raise ValueError(f"{flag}: requires --executor {needed_by}")
        if not value and executor == needed_by:
            raise ValueError(f"--executor {needed_by}: requires {flag} ADDRESS")
    if executor != "process" and workers is not None:
        raise ValueError(
            f"--workers: not supported with --executor {executor}, which sets the number of workers"
        )


def executor_of(executor: str | None, scheduler: str, address: str) -> str | None:
    """The engine that a command line chooses: --executor, else dask with --scheduler and Ray with --address."""
    return executor or ("dask" if scheduler else "ray" if address else None)


def quiet_loggers(executor: str) -> None:
    """Silence the loggers of dask or Ray in this process, for commands alone: they report a lost cluster in one line,
    the packages log dozens."""
    package = {"dask": "distributed", "ray": "ray"}.get(executor)
    if package is None or find_spec(package) is None:
        return
    import_module(package)  # which sets the levels
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == package:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def open_engine(options: EngineOptions, notice: Notice, stacks: Path | None = None) -> Engine:
    """An engine that is not started, but connected to its cluster, if any; EngineFailure without a connection.

    notice: of workers that are lost, and of what holds up a cluster. stacks: a file that says where workers hung.
    """
    executor = options.executor
    if isinstance(executor, Engine):
        return executor
    if isinstance(executor, Executor):
        return BorrowedEngine(executor, options.workers)
    if executor not in EXECUTORS:
        raise TypeError(
            f"executor: must be {', '.join(EXECUTORS)} or an Executor of concurrent.futures (got {executor!r})"
        )
    if executor == "dask":
        from tokenmill.engines.dask_engine import DaskEngine

        return DaskEngine(options.scheduler, notice)
    if executor == "ray":
        from tokenmill.engines.ray_engine import RayEngine

        return RayEngine(options.address, notice)
    from tokenmill.engines.process_engine import ProcessEngine

    return ProcessEngine(
        options.workers,
        options.start_method,
        notice=notice,
        stall_seconds=options.stall_seconds,
        stacks=stacks,
    )
