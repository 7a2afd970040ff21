"""Ctrl-C and requests to end (SIGTERM), taken where the work can be kept: first asked for, then done."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Final

from bpe.errors import Stopped

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Used as a context. While `polled`, the first signal only makes `asked()` true; else it raises Stopped at once.

    Outside the main thread signals stay as they are.
    """

    def __init__(self) -> None:
        self.polled = False
        self._received = 0
        self._before: dict[int, Any] = {}

    def asked(self) -> bool:
        """Whether a signal came while polled."""
        return self._received != 0

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self._received or signal.SIGINT)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = not self._received
        self._received = self._received or number
        if not (self.polled and first):
            raise Stopped("interrupted", 128 + number)
        with contextlib.suppress(OSError, ValueError, AttributeError, RuntimeError):
            sys.stderr.write("\nbpe: stopping after this block; once more to stop at once\n")

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()
