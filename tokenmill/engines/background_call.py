"""One call beside other work, in a thread that is gone when its result is asked for.

Reading a tokenizer is the core's work and importing is Python's: both at once in place of one after the other. The
workers are forked afterwards, which is safe only in a process with a single thread (process_engine.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Generic, TypeVar

from tokenmill.stores.system import start_thread

_T = TypeVar("_T")
_LAST_STEPS_SECONDS = 0.1  # a joined thread has let go of Python but may still be on its way out


class BackgroundCall(Generic[_T]):
    """Runs call() while the context is open; leaving waits for it. Its error waits for `result`."""

    def __init__(self, call: Callable[[], _T]) -> None:
        self._call = call
        self._results: list[_T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="background-call", daemon=True)

    def __enter__(self) -> BackgroundCall[_T]:
        try:
            start_thread(self._thread)
        except (RuntimeError, MemoryError):  # the system gives no thread: then one after the other
            self._run()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        identity = self._thread.native_id
        if identity is None:
            return  # it never ran
        self._thread.join()
        stop = time.monotonic() + _LAST_STEPS_SECONDS
        while Path(f"/proc/self/task/{identity}").exists() and time.monotonic() < stop:
            time.sleep(0.0002)

    def result(self) -> _T:
        """What the call returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except BaseException as error:
            self._error = error
