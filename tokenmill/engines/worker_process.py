"""The life of a worker process: prepare, answer tasks from its pipe, end when the pipe closes.

A long task calls `take_step`, which reports its progress and ends the worker if its parent is gone.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from tokenmill.engines.engine import attempt
from tokenmill.engines.stop_signals import ENDING_SIGNALS, STOP_SIGNALS

_REPORT_SECONDS = 0.25  # between two reports of progress
_pipe: Connection | None = None  # set in a worker process only
_next_report = 0.0


def take_step(done_bytes: int = 0) -> None:
    """Report that a task makes progress. Takes 0.2 µs.

    A task that takes seconds must call it, about every 0.1 s: without it, a long task looks like an endless loop.
    done_bytes: how much of its input the task has done.
    """
    global _next_report
    if _pipe is not None and (now := time.monotonic()) >= _next_report:
        _next_report = now + _REPORT_SECONDS
        try:
            _pipe.send(done_bytes)
        except OSError:  # the parent is gone
            os._exit(1)


def serve(pipe: Connection, inherited: list[Connection], prepare: Callable[[], Any] | None) -> None:
    """Run a worker process until its pipe closes.

    pipe: brings tasks. Takes the answer of each, and before it any number of integers, the bytes done so far.
    inherited: the parent's ends of pipes, which a forked process must close.
    prepare: the first call; None: it comes through the pipe.
    """
    global _pipe
    _pipe = pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ENDING_SIGNALS:  # a forked process has the parent's handlers
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    for other in inherited:
        other.close()
    with suppress(EOFError, OSError):  # the parent is gone
        prepared = attempt(prepare or pipe.recv_bytes())
        while True:
            task = pipe.recv_bytes()
            answer = attempt(task) if prepared[0] else prepared
            try:
                pipe.send(answer)
            except OSError:
                raise
            except Exception as error:
                pipe.send((False, RuntimeError(f"cannot send the result of a task: {error}")))
