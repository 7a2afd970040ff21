"""Where tasks run. The rest of `convert` knows only `concurrent.futures.Executor`: any other one (dask's
`Client.get_executor()`, the standard pools) can stand in.

`ProcessExecutor` is a pool for one machine that keeps promises the standard process pool does not:

- a worker that dies is noticed at once and by name: each worker has its own pipe, so it is known which task it held,
  and no lock can be left locked by the dead;
- a fresh worker takes its place, and its task is tried once more with no other beside it, in case memory was short;
- a worker that does nothing for too long (a deadlock, a disk that does not answer), or works without getting on, is
  ended (convert/processes/watchdog.py);
- workers end with their parent however that ends: their pipe closes, and long tasks look (`take_step`);
- Ctrl-C reaches the parent alone, so a worker never prints a traceback in the middle of the parent's message.

And it can keep tasks that go on with what others left in the memory of their worker together (`submit_kept`).

Start-up. `fork` costs about a millisecond and children inherit the loaded tokenizer, but it is safe only while the
process has a single thread; "auto" takes it then, on Linux, and `spawn` otherwise. All workers are forked before the
pool starts its own thread; those that replace the dead are spawned. A process's own life:
convert/processes/worker_process.py.
"""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import pickle
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Hashable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from convert.errors import WorkerLost
from convert.processes.stop_signals import STOP_SIGNALS
from convert.processes.waiting_tasks import WaitingTasks
from convert.processes.watchdog import Watch, dump_stack
from convert.processes.worker_process import CAREFUL, CRASHES, Start, TaskFuture, Worker, how_it_ended

# A worker has one it works at and one that waits in its pipe.
_TASKS_AHEAD = 2
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


class ProcessExecutor(Executor):
    """`workers` processes, each with its own pipe. initializer(*initargs) runs once in each before its first task.

    start_method: "auto", "fork", "spawn" or "forkserver"; but for fork, functions of the main module (a script's own)
    are not found in a worker. replace: a task whose worker dies is tried once more by a
    fresh one, and gets WorkerLost if that dies too; else it gets it at once. Tasks that had not begun go to the others.
    When no worker is left every task gets WorkerLost. notice(text) is called in a thread of the pool when a worker was
    lost. stall_seconds: a worker that has a task but uses no processor time for so long, or so much without a step
    (`take_step`), is ended, 0 for never; the file `stacks`, if given, then says where its threads were.
    gathered: functions whose tasks as few workers do as keep up with them (convert/processes/waiting_tasks.py);
    gathered_waiting: how many may wait for it, for each worker that leaves them to others.
    """

    def __init__(
        self,
        workers: int,
        initializer: Callable[..., None] | None = None,
        initargs: tuple[Any, ...] = (),
        start_method: str = "auto",
        *,
        replace: bool = True,
        notice: Callable[[str], None] | None = None,
        stall_seconds: float = 0,
        stacks: Path | None = None,
        gathered: Collection[Callable[..., Any]] = (),
        gathered_waiting: int = 2,
    ) -> None:
        if start_method == "auto":
            start_method = "fork" if may_fork() else "spawn"
        self.start_method = start_method
        context = multiprocessing.get_context(start_method)
        self._waiting = WaitingTasks(gathered, gathered_waiting)
        self._killed = False
        self._all_lost: WorkerLost | None = None
        self._wake_lock = threading.Lock()  # against a pipe that is being closed
        self._wake_read, self._wake_write = os.pipe()
        self._workers: list[Worker] = []
        self._initializer, self._initargs = initializer, initargs
        self._replace, self._notice = replace, notice
        self._losses_in_a_row = 0
        self._stall_seconds, self._stacks = stall_seconds, stacks
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        if start_method == "fork":
            gc.freeze()  # else the first collection in each child would write to, and so copy, every page it inherited
        try:
            start = Start(initializer, initargs, pickled=start_method != "fork")
            for index in range(workers):
                self._workers.append(Worker(index, context, self._workers, start, stacks))
        except BaseException:
            for worker in self._workers:
                worker.process.kill()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            gc.unfreeze()
        self._events = selectors.DefaultSelector()  # kept: to make one for each answer takes 80 us
        self._thread = threading.Thread(target=self._manage, name="convert-workers", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            for worker in self._workers:
                worker.process.kill()
            raise OSError(errno.EAGAIN, "no thread can be started") from None

    @property
    def is_managed(self) -> bool:
        """Whether the thread runs that hands tasks to the workers."""
        return self._thread.is_alive()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future for fn(*args, **kwargs) in some worker; all of it must be picklable."""
        return self._submit(None, fn, args, kwargs)

    def submit_kept(self, key: Hashable, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """A future for fn(*args) in the worker that had the last task with this key, as long as it lives.

        Until `release` that worker gets none with another key. The task must know by itself whether it can go on.
        """
        return self._submit(key, fn, args, {})

    def release(self, key: Hashable) -> None:
        """No other task with this key comes."""
        self._waiting.release(key)
        self._wake()

    def _submit(
        self, key: Hashable, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Future[Any]:
        future = TaskFuture()
        payload = pickle.dumps((fn, args, kwargs), protocol=pickle.HIGHEST_PROTOCOL)
        self._waiting.put(future, payload, fn, key)
        self._wake()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the workers end after the tasks they have, and those waiting unless they are cancelled."""
        was_closed = self._waiting.close(cancel=cancel_futures)
        if not was_closed or cancel_futures:
            self._wake()
        if wait:
            self._thread.join()

    def stop(self, seconds: float) -> None:
        """End: what waits is cancelled, tasks in work have so many seconds. What they write counts for nothing before
        their results are there, so any task may be killed."""
        self.shutdown(wait=False, cancel_futures=True)
        self._thread.join(seconds)
        if self._thread.is_alive():
            self.kill()

    def kill(self) -> None:
        """End the workers now, whatever they do."""
        self._killed = True
        self._waiting.close(cancel=False)
        for worker in list(self._workers):
            worker.process.kill()
        self.shutdown(wait=False, cancel_futures=True)
        self._thread.join(5)  # one that hangs in the kernel ends when that lets it go

    # -- the manager thread: the only one that touches the pipes after the start

    def _wake(self) -> None:
        with self._wake_lock:
            if self._wake_write >= 0:
                os.write(self._wake_write, b"w")

    def _manage(self) -> None:
        alive = list(self._workers)
        self._events.register(self._wake_read, selectors.EVENT_READ)
        for worker in alive:
            self._listen_to(worker)
            worker.send_start()
        watch = Watch(self._stall_seconds)
        while True:
            self._hand_out(alive)
            # Closed, nothing comes any more, so it is looked at first.
            if self._waiting.closed and (self._killed or not self._has_tasks(alive)):
                break
            told = {
                key.data for key, _ in self._events.select(_TICK_SECONDS if self._stall_seconds else None)
            }
            if None in told:
                os.read(self._wake_read, 4096)
            for worker in list(alive):
                if worker not in told:
                    continue
                still_there = worker.collect()
                if worker.answers:
                    self._losses_in_a_row = 0
                if not still_there:
                    alive.remove(worker)
                    self._lose(worker, alive)
            busy = {worker.process.pid: worker for worker in alive if worker.tasks}
            for pid, why in watch.stalled({pid: worker.steps for pid, worker in busy.items()}):
                self._end_stalled(busy[pid], why)
        self._events.close()
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.process.join(5 if worker.stalled or self._killed else None)
        self._fail_all(WorkerLost("the workers were ended"))
        with self._wake_lock:
            os.close(self._wake_write)
            os.close(self._wake_read)
            self._wake_write = -1

    def _listen_to(self, worker: Worker) -> None:
        """For its answers, and its end."""
        for place in (worker.connection, worker.process.sentinel):
            self._events.register(place, selectors.EVENT_READ, worker)

    def _has_tasks(self, alive: list[Worker]) -> bool:
        return len(self._waiting) > 0 or any(worker.tasks for worker in alive)

    def _fail_all(self, error: WorkerLost) -> None:
        """Tasks that are still open when the workers are gone."""
        for worker in self._workers:
            for task in worker.tasks:
                task.future.set_exception(error)
            worker.tasks.clear()

    def _hand_out(self, alive: list[Worker]) -> None:
        """Give each worker a task, then a second one ahead, as far as it is their turn."""
        for ahead in range(_TASKS_AHEAD):
            for worker in alive:
                while len(worker.tasks) <= ahead:
                    task = self._waiting.take(worker, alive)
                    if task is None:
                        break
                    if not task.future.running() and not task.future.set_running_or_notify_cancel():
                        continue
                    worker.tasks.append(task)
                    worker.gathers |= task.gathered
                    try:
                        worker.connection.send_bytes(task.payload)
                    except OSError:
                        break  # it is dead; its sentinel tells in a moment
        if self._all_lost is not None:
            self._waiting.fail(self._all_lost)

    def _lose(self, worker: Worker, alive: list[Worker]) -> None:
        """A worker died: the task it was at is tried once more or fails, those behind it go back to the queue."""
        for place in (worker.connection, worker.process.sentinel):
            self._events.unregister(place)
        worker.process.join(5)
        exitcode = worker.process.exitcode
        if exitcode in (-signal.SIGTERM, -signal.SIGHUP):
            time.sleep(0.1)  # meant for all of us: then this process is about to end, too
        lost = WorkerLost(f"worker {worker.index} {worker.stalled or how_it_ended(exitcode)}")
        lost.place, lost.crashed = worker.place, exitcode is not None and -exitcode in CRASHES
        self._losses_in_a_row += 1
        goes_on = self._replace and not self._waiting.closed and self._losses_in_a_row <= _LOSSES_IN_A_ROW
        begun = worker.tasks.popleft() if worker.tasks else None
        again = begun is not None and goes_on and not begun.tries and not worker.stalled
        if begun is not None and again:
            begun.tries, begun.payload = 1, CAREFUL + begun.payload
            worker.tasks.appendleft(begun)
        self._waiting.give_back(worker.tasks)
        worker.tasks.clear()
        fresh = self._start_fresh(worker.index) if goes_on else None
        if fresh is not None:
            alive.append(fresh)
            if self._notice is not None:
                what = "its task is tried once more" if again else "its task is given up"
                self._notice(
                    f"warning: {lost}; a fresh worker takes its place"
                    + (f", {what}" if begun is not None else "")
                )
        self._all_lost = None if alive else lost
        if begun is not None and not again:
            begun.future.set_exception(lost)

    def _start_fresh(self, index: int) -> Worker | None:
        """A worker in place of a dead one; not forked, since this process has threads by now."""
        context = multiprocessing.get_context("spawn")
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            start = Start(self._initializer, self._initargs, pickled=True)
            fresh = Worker(index, context, [], start, self._stacks)
        except (
            Exception
        ):  # no process to be had, or an initializer that cannot be sent: the others go on alone
            return None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._workers.append(fresh)
        self._listen_to(fresh)
        fresh.send_start()
        return fresh

    def _end_stalled(self, worker: Worker, why: str) -> None:
        if worker.stalled:
            return  # killed before, but the system has not let it go
        worker.stalled = f"{why} and was ended"
        if self._stacks is not None and dump_stack(worker.process.pid, self._stacks):
            worker.stalled += f" (where it was: {self._stacks})"
        worker.process.kill()
