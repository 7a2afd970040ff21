"""Tasks without workers: for tests, for debugging, for callers who may not start any."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any

from tokenmill.engines.engine import Engine


class InlineEngine(Engine):
    """Runs each task at once, in this thread."""

    can_stick = True
    inherits = True

    @property
    def worker_count(self) -> int:
        """See Engine."""
        return 1

    def start(self, most_tasks: int, prepare: Callable[..., None], *arguments: Any) -> None:
        """See Engine."""
        prepare(*arguments)

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, sticky: Hashable = None, **kwargs: Any
    ) -> Future[Any]:
        """A future that is already done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

    def stop(self, seconds: float) -> None:
        """Nothing is in work."""
