"""Many tasks on one engine: a bounded number in flight, every result read, the first error ends it all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from itertools import islice
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from tokenmill.engines.engine import Engine
from tokenmill.engines.errors import WorkerLost

# A task may take minutes, such as what a compressed file holds: so often it is asked how far it is.
SHOW_SECONDS = 0.5

_T = TypeVar("_T")
_R = TypeVar("_R")


class TaskPool:
    """Tasks of any kind in flight; open as a context, which cancels what has not begun when it is left."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._waiting: dict[Future[Any], tuple[Any, Callable[[], str]]] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()

    def __enter__(self) -> TaskPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self._waiting:
            future.cancel()

    def __len__(self) -> int:
        return len(self._waiting)

    def finished(self) -> Iterator[tuple[Any, Any]]:
        """(task, result) of those that went well and that `done` has not given, without waiting: after an error."""
        for future, (task, _) in self._waiting.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield task, future.result()

    def submit(
        self,
        task: Any,
        describe: Callable[[], str],
        function: Callable[..., Any],
        *args: Any,
        sticky: Hashable = None,
        name: str | None = None,
    ) -> None:
        """Begin function(*args); `task` comes back with its result, describe() names it in an error.

        sticky: of tasks for one worker, see `Engine.submit`. An engine that lost a worker a moment ago may refuse the
        task: that is an error of the task, as if it had begun.
        """
        try:
            future = self.engine.submit(function, *args, sticky=sticky)
        except (BrokenExecutor, RuntimeError) as error:  # broken, or shut down
            future = Future()
            future.set_exception(BrokenExecutor(str(error)) if type(error) is RuntimeError else error)
        self._waiting[future] = (task, describe)
        future.add_done_callback(self._done.put)

    def running(self) -> Iterator[tuple[Any, int]]:
        """(task, done bytes) of those that are not done, as far as they tell."""
        for future, (task, _) in self._waiting.items():
            yield task, getattr(future, "done_bytes", 0)

    def done(self, seconds: float | None = None) -> Iterator[tuple[Any, Any]]:
        """(task, result) of those that are done, after waiting for the first, at most so many seconds. A lost worker's
        error names its task."""
        while True:
            self.engine.check()
            try:
                finished = [self._done.get(timeout=SHOW_SECONDS if seconds is None else seconds)]
                break
            except Empty:
                if seconds is not None:
                    return
        while not self._done.empty():
            finished.append(self._done.get())
        for future in finished:
            task, describe = self._waiting.pop(future)
            try:
                result = future.result()
            except (BrokenExecutor, CancelledError) as error:
                what = str(error) or "the executor cancelled a task"
                lost = WorkerLost(
                    f"{what} while processing {describe()}. Run the same command again to resume, with fewer --workers "
                    f"if memory is short."
                )
                if isinstance(error, WorkerLost):
                    lost.place, lost.crashed = error.place, error.crashed
                raise lost from error
            except Exception as error:
                if not hasattr(error, "exit_code") and not isinstance(
                    error, (OSError, ImportError, MemoryError)
                ):
                    # Of the executor, or a bug.
                    error.add_note(f"while a worker processed {describe()}")
                raise
            yield task, result


def run_tasks(
    engine: Engine,
    function: Callable[[_T], _R],
    tasks: Iterable[_T],
    window: int,
    describe: Callable[[_T], str],
    show: Callable[[int], None] = lambda done_bytes: None,
) -> Iterator[tuple[_T, _R]]:
    """(task, result) as they are done, at most `window` of them in flight; every result is read.

    show(done_bytes) is told now and then how much those in flight have done, as far as they tell.
    """
    remaining = iter(tasks)
    with TaskPool(engine) as pool:
        while True:
            for task in islice(remaining, window - len(pool)):
                pool.submit(task, lambda task=task: describe(task), function, task)  # type: ignore[misc]
            if not len(pool):
                return
            yield from pool.done(SHOW_SECONDS)
            show(sum(done for _, done in pool.running()))
