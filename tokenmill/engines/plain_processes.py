"""Worker processes by the standard library, where `ProcessEngine` can't be: Windows has no pipes that one can wait for.

They are spawned, not watched for hanging, and a worker that dies ends the run (WorkerLost), as the pool ends then.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tokenmill.engines.engine import BorrowedEngine


class PlainProcesses(BorrowedEngine):
    """`workers` processes, which end with the engine."""

    def __init__(self, workers: int) -> None:
        self._pool = ProcessPoolExecutor(workers, get_context("spawn"))
        super().__init__(self._pool, workers)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """See Engine."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)
