"""Which engine a conversion has, by its options or the caller's executor; what is not chosen is not imported."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from convert.options import ConvertOptions
from engines.engine import BorrowedEngine, Engine


def open_engine(
    options: ConvertOptions, executor: Executor | None, notice: Callable[[str], None], stacks: Path
) -> Engine:
    """An engine that is not started, but connected to its cluster, if any; EngineFailure if that is not there.

    notice(text) is called, in any thread, when workers are lost. stacks: a file that says where workers hung.
    """
    if isinstance(executor, Engine):
        return executor
    if executor is not None:
        return BorrowedEngine(executor, options.worker_count)
    if options.executor == "dask":
        from engines.dask_engine import DaskEngine

        return DaskEngine(options.scheduler, notice)
    if options.executor == "ray":
        from engines.ray_engine import RayEngine

        return RayEngine(options.address, notice)
    from engines.process_engine import ProcessEngine

    return ProcessEngine(
        options.worker_count,
        options.start_method,
        notice=notice,
        stall_seconds=options.stall_seconds,
        stacks=stacks,
    )
