"""An engine that runs each task when it is submitted, in this process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tokenmill.engines.engine import Engine


class InlineEngine(Engine):
    """The simplest engine: it has no workers."""

    inherits = True
    worker_count = 1

    def start(self, max_tasks: int, prepare: Callable[..., Any], *arguments: Any) -> None:
        prepare(*arguments)

    def submit(self, fn: Callable[..., Any], /, *args: Any, name: Any = "", **kwargs: Any) -> Future[Any]:
        return run_now(fn, *args, **kwargs)


def run_now(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a function and return its result or error as a future that is done."""
    future: Future[Any] = Future()
    try:
        future.set_result(fn(*args, **kwargs))
    except Exception as error:
        future.set_exception(error)
    return future
