"""Tasks without processes: for tests, for debugging, for callers who may not start any."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from typing import Any


class InlineExecutor(Executor):
    """Runs each task at once, in this process."""

    def __init__(
        self, initializer: Callable[..., None] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        if initializer is not None:
            initializer(*initargs)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is already done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def submit_kept(self, key: Hashable, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """The same: all is done in one process."""
        return self.submit(fn, *args)

    def release(self, key: Hashable) -> None:
        """Nothing is kept for a key."""
