"""Tasks in worker processes of this machine, which keep promises that the standard process pool does not:

- a worker that dies is noticed at once and by name: each worker has its own pipe, so it is known which task it held,
  and no lock can be left locked by the dead;
- a fresh worker takes its place, and its task is tried once more with no other beside it, in case memory was short;
- a worker that does nothing for too long (a deadlock, a disk that does not answer), or works without getting on, is
  ended (tokenmill/engines/watchdog.py);
- workers end with their parent however that ends: their pipe closes, and long tasks look (`take_step`);
- Ctrl-C reaches the parent alone, so a worker never prints a traceback in the middle of the parent's message.

Start-up. `fork` costs about a millisecond and children inherit the loaded tokenizer, but it is safe only while the
process has a single thread; "auto" takes it then, on Linux, and `spawn` otherwise. All workers are forked before the
engine starts its own thread; those that replace the dead are spawned. A process's own life:
tokenmill/engines/worker_process.py. Who gets which task: tokenmill/engines/dispatch.py.
"""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import selectors
import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any

from tokenmill.engines.dispatch import Dispatch
from tokenmill.engines.engine import Engine, pickled, settle
from tokenmill.engines.errors import WorkerLost
from tokenmill.engines.stop_signals import ENDING_SIGNALS, STOP_SIGNALS
from tokenmill.engines.watchdog import Watch, dump_stack
from tokenmill.engines.worker_process import CAREFUL, CRASHES, Start, Task, TaskFuture, Worker, how_it_ended
from tokenmill.stores.system import held_back, start_thread

# So many workers may die one after the other without a task being done between; then no other is started.
_LOSSES_IN_A_ROW = 3
_TICK_SECONDS = 1.0


def may_fork() -> bool:
    """Whether fork is safe here and now: Linux, and not a second thread in the process, native ones included."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir()) == 1
    except OSError:
        return False


class ProcessEngine(Engine):
    """`workers` processes, each with its own pipe.

    start_method: "auto", "fork", "spawn" or "forkserver"; but for fork, functions of the main module (a script's own)
    are not found in a worker. replace: a task whose worker dies is tried once more by a
    fresh one, and gets WorkerLost if that dies too; else it gets it at once. Tasks that had not begun go to the others.
    When no worker is left every task gets WorkerLost. notice(text) is called in a thread of the engine when a worker
    was lost. stall_seconds: a worker that has a task but uses no processor time for so long, or so much without a step
    (`take_step`), is ended, 0 for never; the file `stacks`, if given, then says where its threads were.
    """

    can_stick = True
    inherits = True

    def __init__(
        self,
        workers: int,
        start_method: str = "auto",
        *,
        replace: bool = True,
        notice: Callable[[str], None] | None = None,
        stall_seconds: float = 0,
        stacks: Path | None = None,
    ) -> None:
        self._count, self._start_method = workers, start_method
        self._replace, self._notice = replace, notice
        self._stall_seconds, self._stacks = stall_seconds, stacks
        self._prepare: tuple[Callable[..., None] | None, tuple[Any, ...]] = (
            None,
            (),
        )  # that each worker does first
        self._dispatch = Dispatch()
        self._killed = False
        self._losses_in_a_row = 0
        self._workers: list[Worker] = []  # all there were
        self._alive: set[Worker] = set()
        self._all_lost: WorkerLost | None = None
        self._thread: threading.Thread | None = None
        self._open: set[TaskFuture] = set()  # that are not done
        self._broken: BaseException | None = None  # what the thread ended by
        self._wake_lock = threading.Lock()  # against a pipe that is being closed
        self._wake_read = self._wake_write = -1
        self._is_woken = False

    @property
    def worker_count(self) -> int:
        """See Engine; those that were lost are replaced."""
        return self._count

    def start(self, most_tasks: int, prepare: Callable[..., None] | None = None, /, *arguments: Any) -> None:
        """Start the workers, each of which does prepare(*arguments) before its first task."""
        self._count = min(self._count, most_tasks)
        self._prepare = prepare, arguments
        method = self._start_method
        if method == "auto":
            method = "fork" if may_fork() else "spawn"
        context = multiprocessing.get_context(method)
        if method == "fork":
            gc.freeze()  # else the first collection in each child would write to, and so copy, every page it inherited
        with held_back(STOP_SIGNALS):  # to be raised when somebody ends what was started
            try:
                start = Start(prepare, arguments, pickled=method != "fork")
                for index in range(self._count):
                    self._workers.append(Worker(index, context, self._workers, start, self._stacks))
                self._wake_read, self._wake_write = os.pipe()
                self._thread = self._managing()
            except BaseException:
                self._kill_workers()
                raise
            finally:
                gc.unfreeze()

    def _managing(self) -> threading.Thread:
        """A thread that hands tasks to the workers, started."""
        thread = threading.Thread(target=self._run, name="convert-workers", daemon=True)
        try:
            start_thread(thread)
        except RuntimeError:
            raise OSError(errno.EAGAIN, "cannot start a thread") from None
        return thread

    def __enter__(self) -> ProcessEngine:
        """The engine; its workers are started, if they are not yet."""
        if self._thread is None:
            self.start(self._count)
        return self

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, sticky: Hashable = None, **kwargs: Any
    ) -> Future[Any]:
        """See Engine."""
        task = Task(TaskFuture(), pickled(fn, *args, **kwargs), sticky)
        self._open.add(task.future)
        task.future.add_done_callback(self._open.discard)
        try:
            self._dispatch.add(task)
        except RuntimeError:
            if self._broken is not None:
                raise self._broken from None
            raise
        self._wake()
        return task.future

    def release(self, key: Hashable) -> None:
        """See Engine."""
        self._dispatch.release(key)
        self._wake()

    def check(self) -> None:
        """What ended the thread that hands tasks to the workers; MemoryError if it found none as it began."""
        if self._broken is not None:
            raise self._broken
        if self._thread is not None and not self._thread.is_alive():
            raise MemoryError

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the workers end after the tasks they have, and those waiting unless they are cancelled."""
        self._dispatch.close(cancel=cancel_futures)
        self._wake()
        if wait and self._thread is not None and not self._killed:
            self._thread.join()

    def stop(self, seconds: float) -> None:
        """End: what waits is cancelled, tasks in work have so many seconds. What they write counts for nothing before
        their results are there, so any task may be killed."""
        self.shutdown(wait=False, cancel_futures=True)
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                self.kill()

    def kill(self) -> None:
        """End the workers now, whatever they do."""
        self._killed = True
        self._kill_workers()
        self.shutdown(wait=False, cancel_futures=True)
        if self._thread is not None:
            self._thread.join(5)  # one that hangs in the kernel ends when that lets it go

    def _kill_workers(self) -> None:
        for worker in list(self._workers):
            worker.process.kill()

    def _wake(self) -> None:
        with self._wake_lock:
            if self._wake_write >= 0 and not self._is_woken:
                self._is_woken = True
                os.write(self._wake_write, b"w")

    # -- the thread of the engine: the only one that touches the pipes after the start

    def _run(self) -> None:
        """An error of the thread, such as no memory, is that of all tasks: told where they are waited for. Python's
        hook for errors of threads would print a traceback, and leave who waits for ever."""
        try:
            self._manage()
        except BaseException as error:
            self._broken = error
            self._kill_workers()
            self._dispatch.close(cancel=False)
            for future in list(self._open):
                with suppress(InvalidStateError):  # cancelled meanwhile
                    future.set_exception(error)
        finally:
            with self._wake_lock:
                os.close(self._wake_write)
                os.close(self._wake_read)
                self._wake_write = -1

    def _manage(self) -> None:
        with selectors.DefaultSelector() as self._events:
            self._events.register(self._wake_read, selectors.EVENT_READ)
            for worker in list(self._workers):
                self._welcome(worker)
            watch = Watch(self._stall_seconds)
            # Killed, the workers are not waited for, closed, they do what there is.
            while not self._killed and not (self._dispatch.is_closed and self._dispatch.is_done):
                self._hand_out()
                self._listen()
                self._end_stalled(watch)
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.process.join(5 if worker.stalled or self._killed else None)
        self._dispatch.close(cancel=True)
        for worker in self._workers:
            for task in worker.tasks:  # still open now that the workers are gone
                task.future.set_exception(WorkerLost("the workers were stopped"))
            worker.tasks.clear()

    def _welcome(self, worker: Worker) -> None:
        self._alive.add(worker)
        for place in (worker.connection, worker.process.sentinel):
            self._events.register(place, selectors.EVENT_READ, worker)
        worker.send_start()
        self._dispatch.join(worker)

    def _hand_out(self) -> None:
        while (found := self._dispatch.next()) is not None:
            worker, task = found
            with suppress(OSError):  # it is dead; its sentinel tells in a moment
                worker.connection.send_bytes(task.payload)
        if self._all_lost is not None:
            self._dispatch.fail(self._all_lost)

    def _listen(self) -> None:
        """Wait for something to happen, and see to it."""
        told: dict[Worker, bool] = {}  # and whether it has ended
        for key, _ in self._events.select(_TICK_SECONDS if self._stall_seconds else None):
            if key.data is None:
                with self._wake_lock:
                    self._is_woken = False
                    os.read(self._wake_read, 16)
            else:
                told[key.data] = told.get(key.data, False) or key.fileobj is not key.data.connection
        for worker, has_ended in told.items():
            try:
                for good, value in worker.answers():
                    self._losses_in_a_row = 0
                    settle(self._dispatch.answered(worker).future, good, value)
            except (EOFError, OSError):
                has_ended = True
            if has_ended:
                self._lose(worker)

    def _lose(self, worker: Worker) -> None:
        """A worker died: the task it was at is tried once more or fails, those behind it go back to the queue."""
        self._alive.discard(worker)
        for place in (worker.connection, worker.process.sentinel):
            self._events.unregister(place)
        worker.process.join(5)
        exitcode = worker.process.exitcode
        if exitcode is not None and -exitcode in ENDING_SIGNALS:
            time.sleep(0.1)  # meant for all of us: then this process is about to end, too
        lost = WorkerLost(f"worker {worker.index} {worker.stalled or how_it_ended(exitcode)}")
        lost.place, lost.crashed = worker.place, exitcode is not None and -exitcode in CRASHES
        self._losses_in_a_row += 1
        goes_on = self._replace and not self._dispatch.is_closed and self._losses_in_a_row <= _LOSSES_IN_A_ROW
        begun = self._dispatch.lose(worker)
        again = begun is not None and goes_on and not begun.tries and not worker.stalled
        if begun is not None and again:
            begun.payload = CAREFUL + begun.payload
            self._dispatch.try_again(begun)
        has_fresh = goes_on and self._start_fresh(worker.index)
        if has_fresh and self._notice is not None:
            what = " Its task is retried." if again else " Its task failed." if begun is not None else ""
            self._notice(f"warning: {lost}. A new worker replaces it.{what}")
        self._all_lost = None if self._alive else lost
        if begun is not None and not again:
            begun.future.set_exception(lost)

    def _start_fresh(self, index: int) -> bool:
        """Start a worker in place of a dead one; not forked, since this process has threads by now."""
        context = multiprocessing.get_context("spawn")
        try:
            with held_back(STOP_SIGNALS):
                fresh = Worker(index, context, [], Start(*self._prepare, pickled=True), self._stacks)
        except (
            Exception
        ):  # no process to be had, or what it does first cannot be sent: the others go on alone
            return False
        self._workers.append(fresh)
        self._welcome(fresh)
        return True

    def _end_stalled(self, watch: Watch) -> None:
        busy = ((worker.process.pid, worker.steps) for worker in self._alive if worker.tasks)
        for pid, why in watch.stalled(busy):
            worker = next(worker for worker in self._alive if worker.process.pid == pid)
            if worker.stalled:
                continue  # killed before, but the system has not let it go
            worker.stalled = f"{why} and was stopped"
            if self._stacks is not None and dump_stack(pid, self._stacks):
                worker.stalled += f" (stack traces: {self._stacks})"
            worker.process.kill()
