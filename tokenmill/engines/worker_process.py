"""A worker process's life: how it is started, what it does first, the tasks it answers, how it ends.

`Worker` is the parent's view of it, `serve` its own: it begins with the initializer, takes a task from its pipe,
answers it, and so on until the pipe closes, as it does however the parent ends. A long task calls `take_step`.

A spawned worker does not import the caller's main module, so a script needs no main guard, and gets its initializer by
its own pipe: `Process.start()` would wait for ever for a child that died before it had read more than a pipe holds.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from types import ModuleType
from typing import Any

from tokenmill.engines.engine import attempt
from tokenmill.engines.stop_signals import ENDING_SIGNALS, STOP_SIGNALS
from tokenmill.engines.watchdog import let_stack_be_dumped
from tokenmill.stores.system import let_through

_REPORT_SECONDS = 0.25  # between two reports of a worker that its task goes on

_parent_id: int | None = None  # in a worker: of the process it works for
_reports: Connection | None = None  # in a worker: where it reports to
_next_report = 0.0
_tells_places = False  # in a worker whose task ended another before
CAREFUL = b"!"  # before the payload of such a task; no pickle begins so
_GOES_ON = b"+"  # before the bytes done, in place of an answer; nor does one begin so


class TaskFuture(Future[Any]):
    """That of a task in a worker. done_bytes: as the task last told with `take_step`."""

    done_bytes = 0


@dataclass(eq=False)
class Task:
    """What is to be run; sticky: its key; number: by which its turn comes; tries: how many workers died of it."""

    future: TaskFuture
    payload: bytes
    sticky: Hashable = None
    number: int = 0
    tries: int = 0


def take_step(place: Any = None, done_bytes: int = 0) -> None:
    """A task goes on: for tasks of seconds, to call every 0.1 s of work or so. 0.2 µs. Ends a worker without parent.

    The parent is told now and then; a task that never does so looks like an endless loop in the end. place: what the
    task is about to do. Of a task that ended a worker before, the parent is told each time: should it end this one too,
    its WorkerLost has the `place`. done_bytes: how much of its input the task is through.
    """
    global _next_report
    if _parent_id is not None and os.getppid() != _parent_id:
        os._exit(1)
    if _tells_places and place is not None and _reports is not None:
        with suppress(OSError):
            _reports.send((None, place))
    if _reports is not None and (now := time.monotonic()) >= _next_report:
        _next_report = now + _REPORT_SECONDS
        with suppress(OSError):  # the parent is gone; the next look at it ends this
            _reports.send_bytes(b"%b%d" % (_GOES_ON, done_bytes))


class Start:
    """What a worker does first, `initializer(*initargs)`: inherited by a forked one, sent (pickled) to any other."""

    def __init__(
        self, initializer: Callable[..., None] | None, initargs: tuple[Any, ...], *, pickled: bool
    ) -> None:
        call = (initializer, initargs)
        self.inherited = None if pickled else call
        self.message = pickle.dumps(call, protocol=pickle.HIGHEST_PROTOCOL) if pickled else None


class Worker:
    """A process, the parent's end of its pipe, and the tasks it was given and has not answered, oldest first."""

    def __init__(
        self,
        index: int,
        context: BaseContext,
        earlier: list[Worker],
        start: Start,
        stacks: Path | None,
    ) -> None:
        self.index = index
        self.place: Any = None  # what it said its task is at
        self._start_message = start.message
        self.tasks: deque[Task] = deque()
        self.sticky: Hashable = None  # the key of the tasks that come to it alone
        self.steps = 0  # answers, and reports that a task goes on
        self.stalled = ""
        self.connection, remote = context.Pipe()
        # A forked child inherits the parent's ends of its own and of the earlier pipes; were they to stay open, it
        # would never see the end of its pipe.
        inherited = (
            [self.connection, *(w.connection for w in earlier)]
            if context.get_start_method() == "fork"
            else []
        )
        # mypy knows Process only on the concrete contexts.
        make: Any = context
        self.process: Any = make.Process(
            target=serve,
            args=(remote, inherited, start.inherited, os.getpid(), stacks),
            name=f"convert-{index}",
            daemon=True,
        )
        with _main_left_out():
            self.process.start()
        remote.close()
        self._answers = select.poll()  # Connection.poll makes a selector each time: 40 us
        self._answers.register(self.connection, select.POLLIN)

    def send_start(self) -> None:
        """Tell one that was not forked what it does first; waits until it reads."""
        if self._start_message is None:
            return
        with suppress(OSError):  # it is dead; its sentinel tells in a moment
            self.connection.send_bytes(self._start_message)
        self._start_message = None

    def answers(self) -> Iterator[tuple[bool, Any]]:
        """What lies in the pipe: (True, result) or (False, error) of the first of its tasks, whoever takes it then
        takes the task too. EOFError or OSError if the worker is gone."""
        while self._answers.poll(0):
            answer = self.connection.recv_bytes()
            self.steps += 1
            if answer.startswith(_GOES_ON):
                if self.tasks:
                    self.tasks[0].future.done_bytes = int(answer.removeprefix(_GOES_ON))
                continue
            try:
                good, value = pickle.loads(answer)
            except MemoryError as error:
                good, value = False, error
            except Exception as error:
                good, value = False, RuntimeError(f"cannot read the result of a task: {error}")
            if good is None:
                self.place = value
            else:
                self.place = None
                yield good, value


@contextmanager
def _main_left_out() -> Iterator[None]:
    """While it lasts, a process that is started finds no main module to import before it begins."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def serve(
    connection: Connection,
    inherited: list[Connection],
    start: tuple[Callable[..., None] | None, tuple[Any, ...]] | None,
    parent_id: int,
    stacks: Path | None,
) -> None:
    """A worker's whole life: begin with `start`, or what its pipe brings first; answer tasks till it ends."""
    global _parent_id, _reports, _tells_places
    _reports = connection
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ENDING_SIGNALS:  # a forked worker has inherited the parent's handlers
        signal.signal(number, signal.SIG_DFL)
    let_through(STOP_SIGNALS)
    if multiprocessing.parent_process() is not None and os.getppid() == parent_id:
        _parent_id = parent_id  # not so with a fork server, whose end closes the pipe too
    if stacks is not None:
        let_stack_be_dumped(stacks)
    for other in inherited:
        other.close()
    broken: BaseException | None = None
    message = b""
    if start is None:
        try:
            message = connection.recv_bytes()
        except (EOFError, OSError):
            return  # the parent is gone
    try:
        initializer, initargs = start or pickle.loads(message)
        message = b""  # what it begins with may be large
        if initializer is not None:
            initializer(*initargs)
    except BaseException as error:
        error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
        broken = error
    while True:
        try:
            payload = connection.recv_bytes()
        except (EOFError, OSError):
            return
        _tells_places = payload.startswith(CAREFUL)
        answer = attempt(payload.removeprefix(CAREFUL)) if broken is None else (False, broken)
        try:
            connection.send(answer)
        except OSError:
            return  # the parent is gone
        except Exception as error:
            connection.send((False, RuntimeError(f"cannot send the result of a task: {error}")))


CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


def how_it_ended(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        hint = ""
        if -exitcode == signal.SIGKILL:
            hint = ", probably for lack of memory,"
        elif -exitcode in CRASHES:
            hint = " (a bug in tokenmill: please report it with that text)"
        return f"was killed by {name}{hint}"
    return f"exited with status {exitcode}"
