"""Many tasks on one executor: a bounded number in flight, every result read, the first error ends it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import TypeVar

from convert.errors import WorkerLost

_T = TypeVar("_T")
_R = TypeVar("_R")


def run_tasks(
    executor: Executor,
    function: Callable[[_T], _R],
    tasks: Iterable[_T],
    window: int,
    describe: Callable[[_T], str],
) -> Iterator[tuple[_T, _R]]:
    """(task, result) as they are done, at most `window` of them in flight; every result is read.

    The first error ends it and cancels what has not begun; that of a lost worker names the task it was at.
    """
    waiting: dict[Future[_R], _T] = {}
    remaining = iter(tasks)
    try:
        while True:
            for task in remaining:
                waiting[executor.submit(function, task)] = task
                if len(waiting) >= window:
                    break
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                task = waiting.pop(future)
                try:
                    result = future.result()
                except BrokenExecutor as error:
                    raise WorkerLost(
                        f"{error}, while it was at {describe(task)}; run the same command again to go on, "
                        f"with fewer --workers if memory is short"
                    ) from error
                yield task, result
    finally:
        for future in waiting:
            future.cancel()
