"""Which engine a command has, by its options or the caller's executor; what is not chosen is not imported."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tokenmill.engines.engine import BorrowedEngine, Engine, Notice
from tokenmill.stores.system import HAS_PIPES_TO_WAIT_FOR

EXECUTORS: Final = ("process", "dask", "ray")
START_METHODS: Final = ("auto", "fork", "spawn", "forkserver")
STALL_SECONDS: Final = 300.0


@dataclass(frozen=True)
class EngineOptions:
    """executor: "process", `workers` processes of this machine; "dask", the cluster whose scheduler is at the address
    `scheduler`; "ray", that at `address` ("auto": the one that runs here). Or any of `concurrent.futures`, which runs
    `workers` tasks at a time and stays open. start_method, stall_seconds: of processes, see ProcessEngine.
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
        raise ValueError(f"--executor must be one of {', '.join(EXECUTORS)}, got {executor!r}")
    for flag, value, needed_by in (("--scheduler", scheduler, "dask"), ("--address", address, "ray")):
        if not isinstance(value, str):
            raise ValueError(f"{flag} must be an address, got {value!r}")
        if bool(value) != (executor == needed_by):
            raise ValueError(
                f"--executor {needed_by} and {flag} ADDRESS belong together; give both or neither"
            )
    if executor != "process" and workers is not None:
        raise ValueError(f"--workers is for --executor process; {executor} says itself how many there are")


def add_engine_arguments(
    add: Callable[..., Any],
    whole: Callable[[str], int],
    seconds: Callable[[str], float],
    executor: str | None = EXECUTORS[0],
    without: str = "worker processes (default)",
) -> None:
    """The flags of an `argparse` parser by which an engine is chosen. whole, seconds: its types of numbers.

    executor, without: what is meant without --executor, and how the help says it.
    """
    add("--workers", type=whole, metavar="N", help="worker processes (default: one a usable core)")
    add(
        "--executor",
        choices=EXECUTORS,
        default=executor,
        help=f"where the work is done: {without}, or a cluster that sees inputs and output",
    )
    add("--scheduler", default="", metavar="ADDRESS", help="of dask, such as tcp://host:8786")
    add(
        "--address",
        default="",
        metavar="ADDRESS",
        help="of Ray, such as host:6379; auto: the one that runs here",
    )
    add(
        "--start-method",
        choices=START_METHODS,
        default="auto",
        help="how workers start; auto (default): fork on Linux where it is safe, else spawn",
    )
    add(
        "--stall-timeout",
        type=seconds,
        default=STALL_SECONDS,
        metavar="S",
        help="end a worker that uses no processor time for S seconds, or S seconds of it without a step forward "
        "(default %(default)g; 0: never)",
    )


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
    """An engine that is not started, but connected to its cluster, if any; EngineFailure if that is not there.

    notice: of workers that are lost, and of what holds up a cluster. stacks: a file that says where workers hung.
    """
    executor = options.executor
    if isinstance(executor, Engine):
        return executor
    if isinstance(executor, Executor):
        return BorrowedEngine(executor, options.workers)
    if executor not in EXECUTORS:
        raise TypeError(
            f"executor must be one of concurrent.futures, such as Client.get_executor(), got {executor!r}"
        )
    if executor == "dask":
        from tokenmill.engines.dask_engine import DaskEngine

        return DaskEngine(options.scheduler, notice)
    if executor == "ray":
        from tokenmill.engines.ray_engine import RayEngine

        return RayEngine(options.address, notice)
    if not HAS_PIPES_TO_WAIT_FOR:
        from tokenmill.engines.plain_processes import PlainProcesses

        return PlainProcesses(options.workers)
    from tokenmill.engines.process_engine import ProcessEngine

    return ProcessEngine(
        options.workers,
        options.start_method,
        notice=notice,
        stall_seconds=options.stall_seconds,
        stacks=stacks,
    )
