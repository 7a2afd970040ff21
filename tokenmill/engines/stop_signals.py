"""The signals that end a run, as exceptions of the main thread. Imports little, because it is needed first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
# All of these are blocked while a worker starts: the code that Python runs at a fork swallows the exception of a
# handler, and a worker must not receive SIGINT before it ignores it.
STOP_SIGNALS = {signal.SIGINT, *ENDING_SIGNALS}


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end. exit_code: 128 + its number, as in shells."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


@contextmanager
def stop_signals() -> Iterator[None]:
    """Raise `Stopped` for SIGTERM and SIGHUP inside the block. An ignored signal (nohup) stays ignored.

    Does nothing outside the main thread, where Python cannot set signal handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    process_id = os.getpid()

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() == process_id:
            raise Stopped(number)
        # A forked worker of the caller's pool inherits the handler. It must end as its pool expects.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    changed = [number for number in ENDING_SIGNALS if signal.getsignal(number) == signal.SIG_DFL]
    for number in changed:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def held_back() -> Iterator[None]:
    """Block the stop signals inside, in this thread and in processes that it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
