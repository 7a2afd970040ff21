"""How a conversion ends early: by Ctrl-C, by a signal of the system, by an error.

The first Ctrl-C (or SIGTERM, or SIGHUP) lets the workers finish what they are at for a few seconds, so that little work
is lost; the second ends them at once. Either way nothing is lost that was finished, and no process stays behind.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from types import FrameType

from convert.processes.executors import ProcessExecutor
from convert.processes.worker_process import ENDING_SIGNALS

GRACE_SECONDS = 3.0


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end. exit_code: 128 + its number, as shells say it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = 128 + number


@contextmanager
def stop_signals() -> Iterator[None]:
    """Within it, SIGTERM and SIGHUP raise `Stopped` where they would end the process; one that is ignored (nohup) stays
    so. Does nothing outside the main thread, where Python knows no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        raise Stopped(number)

    before = {}
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:
            before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending(executor: Executor, notice: Callable[[str], None]) -> Iterator[Executor]:
    """The executor for the length of the work; after an error no task is begun and no worker left behind."""
    try:
        yield executor
    except BaseException as error:
        try:
            if isinstance(error, KeyboardInterrupt):
                notice(
                    f"stopping: what the workers are at has {GRACE_SECONDS:g} s to finish; again to stop at once"
                )
            if isinstance(executor, ProcessExecutor):
                executor.stop(GRACE_SECONDS)
            else:
                executor.shutdown(wait=True, cancel_futures=True)
        except KeyboardInterrupt:  # the second one, which may be as quick as the notice
            if isinstance(executor, ProcessExecutor):
                executor.kill()
        raise
    executor.shutdown(wait=True)
