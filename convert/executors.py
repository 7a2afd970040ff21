"""Where tasks run. The rest of `convert` knows only `concurrent.futures.Executor`: any other one (dask's
`Client.get_executor()`, the standard pools) can stand in.

`ProcessExecutor` is a pool for one machine that keeps three promises the standard process pool does not:

- a worker that dies is noticed at once and by name: each worker has its own pipe, so it is known which task it held,
  and no lock can be left locked by the dead;
- workers end with their parent however that ends: their pipe closes;
- Ctrl-C reaches the parent alone, so a worker never prints a traceback in the middle of the parent's message.

Start-up. `fork` costs about a millisecond and children inherit the loaded tokenizer, but it is safe only while the
process has a single thread; "auto" takes it then, on Linux, and `spawn` otherwise. All workers are forked before the
pool starts its own thread.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from convert.errors import WorkerLost

# A task this small is sent to a worker while it still works on another: it fits the pipe's buffer, so sending never
# blocks, and the worker need not wait for the parent between two tasks (a parent that imports may answer 5 ms late).
_AHEAD_BYTES = 16 << 10
_TASKS_AHEAD = 2

_Task = tuple["Future[Any]", bytes]


class InlineExecutor(Executor):
    """Runs each task at once, in this process: for tests, for debugging, for callers who may not start processes."""

    def __init__(
        self, initializer: Callable[..., None] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        if initializer is not None:
            initializer(*initargs)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is already done."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def may_fork() -> bool:
    """Whether fork is safe here and now: Linux, and not a second thread in the process, native ones included."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir()) == 1
    except OSError:
        return False


class ProcessExecutor(Executor):
    """`workers` processes, each with its own pipe. initializer(*initargs) runs once in each before its first task.

    start_method: "auto", "fork", "spawn" or "forkserver". A task whose worker dies gets WorkerLost; tasks that had
    not begun go to the others. When no worker is left every task gets WorkerLost.
    """

    def __init__(
        self,
        workers: int,
        initializer: Callable[..., None] | None = None,
        initargs: tuple[Any, ...] = (),
        start_method: str = "auto",
    ) -> None:
        if start_method == "auto":
            start_method = "fork" if may_fork() else "spawn"
        self.start_method = start_method
        context = multiprocessing.get_context(start_method)
        self._queue: deque[_Task] = deque()
        self._lock = threading.Lock()
        self._closing = False
        self._all_lost: WorkerLost | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._workers: list[_Worker] = []
        # No SIGINT between a child's birth and its first statement, which is to ignore it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        if start_method == "fork":
            gc.freeze()  # else the first collection in each child would write to, and so copy, every page it inherited
        try:
            for index in range(workers):
                self._workers.append(_Worker(index, context, self._workers, initializer, initargs))
        except BaseException:
            for worker in self._workers:
                worker.process.kill()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            gc.unfreeze()
        self._thread = threading.Thread(target=self._manage, name="convert-workers", daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future for fn(*args, **kwargs) in some worker; all of it must be picklable."""
        future: Future[Any] = Future()
        payload = pickle.dumps((fn, args, kwargs), protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            if self._closing:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._queue.append((future, payload))
        self._wake()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the workers end after the tasks they have, and those waiting unless they are cancelled."""
        with self._lock:
            was_closing, self._closing = self._closing, True
            if cancel_futures:
                while self._queue:
                    future, _ = self._queue.popleft()
                    if not future.cancel():  # handed back by a worker that died
                        future.set_exception(CancelledError())
        if not was_closing or cancel_futures:
            self._wake()
        if wait:
            self._thread.join()

    def kill(self) -> None:
        """End the workers now, whatever they do: for the second Ctrl-C. Safe, since files are renamed when whole."""
        for worker in self._workers:
            worker.process.kill()
        self.shutdown(wait=True, cancel_futures=True)

    # -- the manager thread: the only one that touches the pipes after the start

    def _wake(self) -> None:
        with self._lock:
            if self._wake_write >= 0:
                os.write(self._wake_write, b"w")

    def _manage(self) -> None:
        alive = list(self._workers)
        while True:
            self._hand_out(alive)
            with self._lock:
                idle = not self._queue and not any(worker.tasks for worker in alive)
                if self._closing and idle:
                    break
            ready = wait(
                [self._wake_read, *(w.connection for w in alive), *(w.process.sentinel for w in alive)]
            )
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            for worker in list(alive):
                told = worker.connection in ready or worker.process.sentinel in ready
                if told and not worker.collect():
                    alive.remove(worker)
                    self._lose(worker, last=not alive)
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.process.join()
        with self._lock:
            os.close(self._wake_write)
            os.close(self._wake_read)
            self._wake_write = -1

    def _hand_out(self, alive: list[_Worker]) -> None:
        """Give each worker a task, then a second one ahead where it is small and enough are left for the others."""
        for ahead in range(_TASKS_AHEAD):
            for worker in alive:
                while len(worker.tasks) <= ahead:
                    with self._lock:
                        if not self._queue:
                            return
                        small = len(self._queue[0][1]) <= _AHEAD_BYTES
                        if worker.tasks and not (small and len(self._queue) > len(alive)):
                            break  # the last tasks wait here for whoever is free first
                        future, payload = self._queue.popleft()
                    if not future.running() and not future.set_running_or_notify_cancel():
                        continue
                    worker.tasks.append((future, payload))
                    try:
                        worker.connection.send_bytes(payload)
                    except OSError:
                        break  # it is dead; its sentinel tells in a moment
        with self._lock:
            if self._all_lost is not None:
                while self._queue:
                    future, _ = self._queue.popleft()
                    if not future.cancelled():
                        future.set_exception(self._all_lost)

    def _lose(self, worker: _Worker, last: bool) -> None:
        """A worker died: the task it was at fails, those it had not begun go back to the head of the queue."""
        worker.process.join()
        lost = WorkerLost(f"worker {worker.index} {_how_it_ended(worker.process.exitcode)}")
        if worker.tasks:
            worker.tasks.popleft()[0].set_exception(lost)
        with self._lock:
            self._queue.extendleft(reversed(worker.tasks))
            self._all_lost = lost if last else None
        worker.tasks.clear()


class _Worker:
    """A process, the parent's end of its pipe, and the tasks it was given and has not answered, oldest first."""

    def __init__(
        self,
        index: int,
        context: BaseContext,
        earlier: list[_Worker],
        initializer: Callable[..., None] | None,
        initargs: tuple[Any, ...],
    ) -> None:
        self.index = index
        self.tasks: deque[_Task] = deque()
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
            target=_serve,
            args=(remote, inherited, initializer, initargs),
            name=f"convert-{index}",
            daemon=True,
        )
        self.process.start()
        remote.close()

    def collect(self) -> bool:
        """Take the answers that lie in the pipe; False if the worker is gone."""
        try:
            while self.connection.poll():
                answer = self.connection.recv_bytes()
                future, _ = self.tasks.popleft()
                try:
                    good, value = pickle.loads(answer)
                except Exception as error:
                    good, value = False, RuntimeError(f"a task's answer could not be read: {error}")
                if good:
                    future.set_result(value)
                else:
                    future.set_exception(value)
        except (EOFError, OSError):
            return False
        return bool(self.process.is_alive())


def _serve(
    connection: Connection,
    inherited: list[Connection],
    initializer: Callable[..., None] | None,
    initargs: tuple[Any, ...],
) -> None:
    """A worker's whole life: answer tasks until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for other in inherited:
        other.close()
    broken: BaseException | None = None
    try:
        if initializer is not None:
            initializer(*initargs)
    except BaseException as error:
        broken = error
    while True:
        try:
            payload = connection.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            if broken is not None:
                raise broken
            function, args, kwargs = pickle.loads(payload)
            answer = (True, function(*args, **kwargs))
        except BaseException as error:
            error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
            answer = (False, error)
        try:
            connection.send(answer)
        except OSError:
            return  # the parent is gone
        except Exception as error:
            connection.send((False, RuntimeError(f"a task's answer could not be sent: {error}")))


def _how_it_ended(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        try:
            name = signal.Signals(-exitcode).name
        except ValueError:
            name = f"signal {-exitcode}"
        hint = ", likely for lack of memory" if -exitcode == signal.SIGKILL else ""
        return f"was ended by {name}{hint}"
    return f"ended with exit status {exitcode}"
