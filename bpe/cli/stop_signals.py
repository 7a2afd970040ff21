"""Ctrl-C and requests to end (SIGTERM, SIGHUP), taken where the work can be kept: first asked for, then done."""

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
    """Used as a context. The first signal only makes `asked()` true, except in `at_once`; a second one raises Stopped.

    One that is ignored (nohup) stays so. Outside the main thread signals stay as they are.
    """

    def __init__(self) -> None:
        self.step = "this step"  # what is still done after the first signal, as people are told
        self.insisted = False  # whether more than one came
        self._raises = False
        self._received = 0
        self._before: dict[int, Any] = {}

    def asked(self) -> bool:
        """Whether a signal came."""
        return self._received != 0

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
        return 128 + (self._received or signal.SIGINT)

    def at_once(self, work: Callable[[], _T]) -> _T:
        """What the work gives; Stopped as soon as a signal comes.

        A later signal is held again, however the work ended: the code that catches its error can keep something.
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
