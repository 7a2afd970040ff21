"""Tasks in worker processes of this machine, with guarantees that the standard process pool does not give:

- A worker that dies is named and replaced. Each worker has its own pipe, so the engine knows which task it had, and a
  dead worker leaves neither a locked lock nor half of a message in a queue that others use.
- The task of a dead worker runs once more, alone, in case memory was short.
- A worker that hangs is killed: it reports no step (`take_step`) for a while in which this process runs too.
- Workers end with their parent, however it ends: their pipe closes, and long tasks look for it.
- Ctrl-C reaches the parent alone.

A thread per worker takes tasks from a queue and waits for the answers of its worker. All workers start before the
threads do, because fork is safe only in a process with a single thread. It takes about a millisecond and shares the
loaded tokenizer. "auto" chooses fork where it is safe, on Linux, and spawn otherwise. Replacements are spawned.
"""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any

from tokenmill.engines.engine import Engine, Notice, Task
from tokenmill.engines.errors import WorkerLost
from tokenmill.engines.stop_signals import ENDING_SIGNALS, held_back
from tokenmill.engines.worker_process import serve
from tokenmill.stores.system import start_thread

_TICK_SECONDS = 1.0  # of waiting for a step; one such wait may include a stop of all processes
_END_SECONDS = 5.0  # for a process to end; one that the kernel holds ends later
_BUG = " (a bug in tokenmill: please report it)"
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_CAUSES = {signal.SIGKILL: " (probably out of memory)", **dict.fromkeys(_CRASHES, _BUG)}
_OPEN, _CLOSED, _CANCELLED, _KILLED = range(4)  # states of an engine, in this order
_starting = threading.Lock()  # held while the main module is hidden


class _Worker:
    """A process and the parent's end of its pipe. hang: how it hung, if it was killed for that."""

    def __init__(self, name: str, method: str, earlier: list[_Worker], prepare: Callable[[], Any]) -> None:
        self.hang = ""
        context: Any = multiprocessing.get_context(method)
        self.pipe, remote = context.Pipe()
        is_forked = method == "fork"
        # A forked process has copies of the parent's ends of all pipes. Unless it closes them, no pipe closes when the
        # parent dies.
        inherited = [self.pipe, *(worker.pipe for worker in earlier)] if is_forked else []
        arguments = (remote, inherited, prepare if is_forked else None)
        self._process = context.Process(target=serve, args=arguments, name=name, daemon=True)
        with nullcontext() if is_forked else _no_main_module():
            self._process.start()
        remote.close()
        # Process.start() would wait forever for a child that died before it had read a large argument.
        self._first_message = b"" if is_forked else pickle.dumps(prepare, pickle.HIGHEST_PROTOCOL)

    def run(self, task: Task, limit: float) -> tuple[bool, Any]:
        """Return the answer to a task; EOFError or OSError if the process died. limit: see `stall_seconds`."""
        if self._first_message:
            self.pipe.send_bytes(self._first_message)
            self._first_message = b""
        self.pipe.send_bytes(task.call)
        while True:
            silent = 0.0
            while limit and not self.pipe.poll(_TICK_SECONDS):
                silent += _TICK_SECONDS
                if silent > limit:
                    self.hang = f"made no progress in {limit:g} s and was stopped"
                    self.kill()
                    raise EOFError
            message = self.pipe.recv_bytes()
            try:
                answer = pickle.loads(message)
            except Exception as error:
                error.add_note("while the result of a task was read")
                return False, error
            if not isinstance(answer, int):
                return answer  # type: ignore[no-any-return]
            task.done_bytes = answer

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> str:
        """Close the pipe, which ends the process, and return how it ended."""
        self.pipe.close()
        self._process.join(_END_SECONDS)
        if self._process.exitcode is None:
            self.kill()
            self._process.join(_END_SECONDS)
        code = self._process.exitcode
        if code is None or code >= 0:
            return f"exited with status {code}"
        if -code in ENDING_SIGNALS:
            time.sleep(0.1)  # probably sent to the whole process group: this process is about to end too
        number = next((each for each in signal.Signals if each == -code), -code)
        return f"was killed by {getattr(number, 'name', number)}{_CAUSES.get(number, '')}"


class ProcessEngine(Engine):
    """`workers` processes, with tasks from one thread of the caller.

    start_method: auto, fork, spawn or forkserver. Except with fork, functions of the main module cannot be tasks.
    notice: takes a warning, in a thread, when a worker was lost.
    stall_seconds: kill a worker that reports no step for this long; 0: never.
    """

    inherits = True

    def __init__(
        self, workers: int, start_method: str = "auto", *, notice: Notice = bool, stall_seconds: float = 0
    ) -> None:
        self.worker_count, self._start_method = workers, start_method
        self._notice, self._stall_seconds = notice, stall_seconds
        self._prepare: Callable[[], Any] = bool
        self._workers: list[_Worker | None] = []  # None: lost, and not yet replaced
        self._threads: list[threading.Thread] = []
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()  # None ends a thread
        self._state = _OPEN
        self._turns = threading.Condition()
        self._running = self._retries = 0  # tasks that run; tasks that run alone, or wait to

    def start(self, max_tasks: int, prepare: Callable[..., Any], *arguments: Any) -> None:
        """See Engine. Forked workers inherit the arguments; for others they are pickled."""
        self.worker_count = min(self.worker_count, max_tasks)
        self._prepare = partial(prepare, *arguments)
        method = self._start_method
        if method == "auto":
            method = "fork" if _may_fork() else "spawn"
        gc.freeze()  # a collection in a child would write to every page that it inherited, and so copy it
        with held_back():  # raised when everything that was started can be ended
            try:
                workers: list[_Worker] = []
                for index in range(self.worker_count):
                    workers.append(_Worker(f"worker {index}", method, workers, self._prepare))
                    self._workers.append(workers[-1])
                for index in range(self.worker_count):
                    thread = threading.Thread(target=self._work, args=(index,), name="worker", daemon=True)
                    start_thread(thread)
                    self._threads.append(thread)
            except BaseException:
                self.kill()
                raise
            finally:
                gc.unfreeze()

    def _send(self, task: Task) -> None:
        if self._state:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self._tasks.put(task)

    def check(self) -> None:
        """Raise MemoryError if a thread ended for lack of memory."""
        if not self._state and not all(thread.is_alive() for thread in self._threads):
            raise MemoryError

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        was_open = self._state == _OPEN
        self._state = max(self._state, _CANCELLED if cancel_futures else _CLOSED)
        for _ in self._threads if was_open else ():
            self._tasks.put(None)
        if wait and self._state != _KILLED:
            for thread in self._threads:
                thread.join()

    def kill(self) -> None:
        """See Engine. Only the results of tasks count, not the files that killed tasks have written."""
        self.shutdown(wait=False, cancel_futures=True)
        self._state = _KILLED
        for worker in list(self._workers):
            if worker is not None:
                worker.kill()
        end = time.monotonic() + _END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    # The methods below run in the threads.

    def _work(self, index: int) -> None:
        """Answer tasks with a worker until the end."""
        while (task := self._tasks.get()) is not None:
            if self._state >= _CANCELLED:
                task.cancel()
            if task.set_running_or_notify_cancel():
                try:
                    answer = self._answer(index, task)
                except BaseException as error:
                    answer = (False, error)
                task.resolve(answer)
        if (worker := self._workers[index]) is not None:
            worker.end()

    def _answer(self, index: int, task: Task) -> tuple[bool, Any]:
        """Run a task, and once more if its worker dies."""
        for is_retry in (False, True):
            with self._turn(is_retry):
                worker = self._workers[index] or self._replace(index)
                try:
                    return worker.run(task, self._stall_seconds)
                except (EOFError, OSError):
                    end, self._workers[index] = worker.end(), None
                    lost = WorkerLost(f"worker {index} {worker.hang or end}")
            if self._state:  # a signal may have ended all processes
                break
            if not is_retry:
                self._notice(f"warning: {lost}. A new worker retries its task.")
        raise lost

    def _replace(self, index: int) -> _Worker:
        """Start another worker. It is not forked, because this process has several threads by now."""
        with held_back():
            self._workers[index] = worker = _Worker(f"worker {index}", "spawn", [], self._prepare)
        if self._state == _KILLED:
            worker.kill()
        return worker

    @contextmanager
    def _turn(self, is_alone: bool) -> Iterator[None]:
        """Wait until a task may run: one that runs alone waits for all others, and they wait for it."""
        with self._turns:
            self._retries += is_alone
            self._turns.wait_for(lambda: not self._running if is_alone else not self._retries)
            self._running += 1
        try:
            yield
        finally:
            with self._turns:
                self._running -= 1
                self._retries -= is_alone
                self._turns.notify_all()


def _may_fork() -> bool:
    """Return whether fork is safe now: on Linux, in a process with a single thread, native threads included."""
    try:
        return sys.platform.startswith("linux") and len(list(Path("/proc/self/task").iterdir())) == 1
    except OSError:
        return False


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Hide the main module, so that a spawned process does not import it, and scripts need no main guard."""
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
