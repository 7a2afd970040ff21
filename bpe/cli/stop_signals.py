"""Ctrl-C and requests to end (SIGTERM, SIGHUP) as `Stopped`, raised at once or after the work that must be complete."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

from bpe.errors import Stopped
from tokenmill.engines.stop_signals import STOP_SIGNALS

_T = TypeVar("_T")


class StopSignals:
    """Raises `Stopped` for SIGINT, SIGTERM and SIGHUP; a context manager.

    The first signal stops the work of `at_once`, such as counting. Between two calls it is deferred until the
    next one, so that counts can be saved after an error. A second signal always raises `Stopped`.

    Ignored signals (nohup) stay ignored. Outside the main thread, the handlers do not change.
    """

    def __init__(self) -> None:
        self._raises = False
        self._received = 0  # the first signal, 0 before it
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """The exit code: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return 128 + (self._received or signal.SIGINT)

    def at_once(self, work: Callable[[], _T]) -> _T:
        """Do the work and return its result. Raise Stopped as soon as a signal comes, or if one came before."""
        try:
            self._raises = True
            if self._received:
                raise Stopped("interrupted", self.exit_code)
            return work()
        finally:
            self._raises = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        is_second = self._received != 0
        self._received = self._received or number
        if self._raises or is_second:
            raise Stopped("interrupted", 128 + number)
        with contextlib.suppress(OSError, ValueError, AttributeError, RuntimeError):
            sys.stderr.write(
                "\ntokenmill: note: stopping after this step. Interrupt again to stop at once.\n"
            )

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()
