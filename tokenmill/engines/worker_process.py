"""The life of a worker process: prepare, answer tasks from its pipe, end when the pipe closes.

A long task calls `take_step`, which reports its progress and ends the worker if its parent is gone.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from multiprocessing.connection import Connection

from tokenmill.engines.engine import Call, attempt
from tokenmill.engines.stop_signals import ENDING_SIGNALS, STOP_SIGNALS
from tokenmill.stores.system import let_through

_REPORT_SECONDS = 0.25  # between two reports of progress

# Set in a worker process only.
_parent_id: int | None = None
_pipe: Connection | None = None
_next_report = 0.0


def take_step(done_bytes: int = 0) -> None:
    """Report that a task makes progress. Takes 0.2 µs.

    A task that takes seconds must call it, about every 0.1 s: without it, a long task looks like an endless loop.
    done_bytes: how much of its input the task has done.
    """
    global _next_report
    if _parent_id is not None and os.getppid() != _parent_id:
        os._exit(1)
    if _pipe is not None and (now := time.monotonic()) >= _next_report:
        _next_report = now + _REPORT_SECONDS
        with suppress(OSError):  # the parent is gone
            _pipe.send(done_bytes)


def serve(pipe: Connection, inherited: list[Connection], prepare: Call | None, parent_id: int) -> None:
    """Run a worker process until its pipe closes.

    pipe: brings tasks. Takes the answer of each, and before it any number of integers, the bytes done so far.
    inherited: the parent's ends of pipes, which a forked process must close.
    prepare: the first call; None: it comes through the pipe.
    """
    global _parent_id, _pipe
    _pipe = pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ENDING_SIGNALS:  # a forked process has the parent's handlers
        signal.signal(number, signal.SIG_DFL)
    let_through(STOP_SIGNALS)
    if os.getppid() == parent_id:  # else it is a fork server, and the pipe closes if that ends
        _parent_id = parent_id
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
