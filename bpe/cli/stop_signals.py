"""Handling of Ctrl-C, SIGTERM and SIGHUP: the first signal requests a stop at a safe point, the second forces it."""

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
    """Context manager. The first signal only makes `asked()` true, except in `at_once`. The second raises Stopped.

    Signals that are ignored (nohup) stay ignored. Outside the main thread, handlers are not changed.
    """

    def __init__(self) -> None:
        self.step = "this step"  # work that continues after the first signal, for the message
        self.insisted = False  # whether there was a second signal
        self._raises = False
        self._received = 0
        self._before: dict[int, Any] = {}

    def asked(self) -> bool:
        """Return whether there was a signal."""
        return self._received != 0

    @property
    def exit_code(self) -> int:
        """The exit code: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return 128 + (self._received or signal.SIGINT)

    def at_once(self, work: Callable[[], _T]) -> _T:
        """Return the result of the work. Raise Stopped as soon as there is a signal.

        After the work, signals are deferred again, so that an error handler can save results.
        """
        try:
            self._raises = True
            if self._received:
                raise Stopped("interrupted", self.exit_code)
            return work()
        finally:
            self._raises = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.insisted = self.asked()
        self._received = self._received or number
        if self._raises or self.insisted:
            raise Stopped("interrupted", 128 + number)
        with contextlib.suppress(OSError, ValueError, AttributeError, RuntimeError):
            sys.stderr.write(
                f"\ntokenmill: note: stopping after {self.step}. Interrupt again to stop at once.\n"
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
