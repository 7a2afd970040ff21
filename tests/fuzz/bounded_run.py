"""Run a reader on an input with limits on memory, time, writes and other effects, and report violations.

A result, or a one-line error of the package's classes, is right. Anything else is wrong: another error, a MemoryError
at a limit on address space, more CPU time than the target's budget, a signal, a file written, another file opened, a
process started, a connection, or code executed. A seed and a number determine each input. Many inputs run in one
child process, and a child that ends early records the number of its input.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tokenmill.errors import TokenmillError

M_ARENA_MAX = -8  # mallopt: each thread's arena reserves 64 MiB of address space
MOST_SILENT_SECONDS = 120.0  # wall-clock limit for a child that hangs where its own timer cannot stop it
_FORBIDDEN = (
    *(
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "subprocess.Popen",
        "pickle.find_class",
    ),
    *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto", "shutil.", "os.remove"),
    *("os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate", "os.utime"),
)
# A sanitizer's runtime reserves terabytes of address space and is many times slower.
IS_SANITIZED = any(name in os.environ.get("LD_PRELOAD", "") for name in ("libasan", "libtsan"))
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Target:
    """A reader and the inputs made for it.

    make(rng, folder): returns an input, bytes or anything else, and writes files only below the folder. read(input):
    runs the reader. errors: error classes that are allowed. base_bytes and bytes_per_byte: memory limit of an input,
    base_bytes + bytes_per_byte per byte; the CPU time limit likewise. must_refuse: a result is wrong as well.
    may_write: allow writes in the input's folder, which is deleted.
    """

    name: str
    make: Callable[[random.Random, Path], Any]
    read: Callable[[Any], object]
    errors: tuple[type[BaseException], ...] = (TokenmillError,)
    base_bytes: int = 1 << 28
    bytes_per_byte: int = 200
    base_seconds: float = 5.0
    seconds_per_byte: float = 2e-5
    must_refuse: bool = False
    may_write: bool = False

    def memory_bytes(self, size: int) -> int:
        """Return the memory limit for an input of `size` bytes."""
        return self.base_bytes + self.bytes_per_byte * size

    def seconds(self, size: int) -> float:
        """Return the CPU time limit for an input of `size` bytes."""
        return self.base_seconds + self.seconds_per_byte * size


class Finding(NamedTuple):
    """A violation and its input."""

    target: str
    seed: int
    number: int
    what: str


@dataclass
class Tally:
    """Totals of a run. executions, refused: by target."""

    executions: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


class TookTooLong(BaseException):
    """The CPU time budget is spent; a BaseException, so that no reader catches it."""


class Forbidden(BaseException):
    """The reader did something no reader may do."""


_watching = False
_writable: Path | None = None  # the folder in which the reader may write
_CHANGING = (
    "shutil.",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.truncate",
    "os.utime",
)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    if event == "open":
        path, _, flags = arguments
        is_writing = (
            isinstance(flags, int) and flags & _WRITING and path != os.devnull and not _may_write(path)
        )
        if not is_writing and "outside" not in str(path):
            return
    elif event == "exec":
        name = getattr(arguments[0], "co_filename", "<")
        if not name.startswith("<"):
            return
    elif event == "ctypes.dlopen":
        if arguments[0] is None or str(arguments[0]).startswith(
            sys.prefix
        ):  # the process, an installed library
            return
    elif not event.startswith(_FORBIDDEN) or (event.startswith(_CHANGING) and _may_write(*arguments)):
        return
    if not _is_import():
        raise Forbidden(f"{event} {arguments!r:.200}")


def _may_write(path: Any, *more: Any) -> bool:
    """Return whether the reader may change a path. An open descriptor was checked when it was opened, including the
    descriptor of a parent folder, the last of `more`.
    """
    if _writable is None:
        return False
    if isinstance(path, int) or (more and isinstance(more[-1], int) and more[-1] >= 0):
        return True
    return Path(os.path.abspath(os.fsdecode(path))).is_relative_to(_writable)  # noqa: PTH100 - links stay


def _is_import() -> bool:
    """Return whether a module is being imported, which runs code and may write bytecode."""
    frame = sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
    return False


def _out_of_time(*_: object) -> None:
    raise TookTooLong


def prepare_process() -> None:
    """Apply the limits for the rest of this process, a child that does nothing else."""
    faulthandler.disable()  # the parent reports signals
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    sys.addaudithook(_audit)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGVTALRM, _out_of_time)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _limited(memory_bytes: int, seconds: float, writable: Path | None) -> Iterator[None]:
    global _watching, _writable
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    endless = resource.RLIM_INFINITY
    if not IS_SANITIZED:  # its runtime reserves terabytes of address space
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory_bytes, endless))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0 if writable is None else endless, endless))
    _writable = writable
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds * (20 if IS_SANITIZED else 1))
    _watching = True
    try:
        yield
    finally:
        _watching = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (endless, endless))
        resource.setrlimit(resource.RLIMIT_FSIZE, (endless, endless))


def size_of(made: Any) -> int:
    """Return the bytes of an input: its own size, or the size of its files on disk."""
    if isinstance(made, Path):
        paths = [made, *made.rglob("*")]
        return sum(512 * path.lstat().st_blocks for path in paths if not path.is_dir())
    return len(made)


def run_one(target: Target, seed: int, number: int, folder: Path) -> tuple[str, bool]:
    """Return (violation, empty if none; whether the reader raised an allowed error). Call it after
    `prepare_process`.
    """
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    made = target.make(random.Random(f"{target.name} {seed} {number}"), folder)
    size = size_of(made)
    try:
        with _limited(
            target.memory_bytes(size), target.seconds(size), folder.resolve() if target.may_write else None
        ):
            target.read(made)
    except target.errors as error:
        if isinstance(error, MemoryError):
            return traceback.format_exc(), False
        text = str(error)
        return ("" if text.isprintable() and text else f"an error that is no line: {text!r}"), True
    except TookTooLong:
        return (
            f"took more than {target.seconds(size):.1f} s for {size} bytes\n{traceback.format_exc()}",
            False,
        )
    except BaseException:
        return f"{size} bytes: {traceback.format_exc()}", False
    return ("a result of what must be refused" if target.must_refuse else ""), False


class _Slice:
    """A child process that runs some inputs of a target, one after the other.

    Shared with the child: the current number, the count of finished inputs, and the count of refused ones.
    """

    def __init__(self, target: Target, seed: int, numbers: range, seconds: float) -> None:
        self.target, self.seed, self.numbers = target, seed, numbers
        self._shared = mmap.mmap(-1, 24)
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self._told = (self._folder / "findings").open("w+b", buffering=0)
        self._at, self._since = -1, time.monotonic()
        self._ended = ""
        self.pid = os.fork()
        if self.pid == 0:
            self._work(time.monotonic() + seconds)

    def _work(self, deadline: float) -> None:
        """Run the child, and exit."""
        try:
            prepare_process()
            inputs = self._folder / "inputs"
            inputs.mkdir()
            refused = 0
            for done, number in enumerate(self.numbers):
                if done and time.monotonic() > deadline:
                    break
                self._shared[:8] = number.to_bytes(8, "little")
                what, was_refused = run_one(self.target, self.seed, number, inputs)
                refused += was_refused
                if what:
                    text = what[-6000:].encode(errors="backslashreplace")
                    self._told.write(number.to_bytes(8, "little") + len(text).to_bytes(8, "little") + text)
                self._shared[8:24] = (done + 1).to_bytes(8, "little") + refused.to_bytes(8, "little")
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)

    def is_over(self) -> bool:
        """Return whether the child has ended; kill it if it is silent for too long."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            if status:
                self._ended = f"the process ended with {os.waitstatus_to_exitcode(status)}"
            return True
        if self._number() != self._at:
            self._at, self._since = self._number(), time.monotonic()
        elif time.monotonic() - self._since > MOST_SILENT_SECONDS:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._ended = f"did not answer for {MOST_SILENT_SECONDS:.0f} s"
            return True
        return False

    def _number(self) -> int:
        return int.from_bytes(self._shared[:8], "little")

    def report(self, tally: Tally) -> int:
        """Add the results to the tally, and return the number to continue with."""
        name = self.target.name
        done, refused = (int.from_bytes(self._shared[at : at + 8], "little") for at in (8, 16))
        self._told.seek(0)
        while head := self._told.read(16):
            text = self._told.read(int.from_bytes(head[8:], "little")).decode()
            tally.findings.append(Finding(name, self.seed, int.from_bytes(head[:8], "little"), text))
        if self._ended:
            tally.findings.append(Finding(name, self.seed, self._number(), self._ended))
            done = self._number() - self.numbers.start + 1
        tally.executions[name] = tally.executions.get(name, 0) + done
        tally.refused[name] = tally.refused.get(name, 0) + refused
        self._told.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return self.numbers.start + done


def fuzz(
    targets: list[Target],
    seed: int,
    first: int,
    executions: int | None,
    seconds: float | None,
    processes: int,
) -> Iterator[Tally]:
    """Run the targets in rotation: `executions` inputs of each, starting at number `first`, or until `seconds` have
    passed.

    Yield the same tally after each slice; after the last slice it is complete.
    """
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for target in targets:  # build the source material before children start
            target.make(random.Random(0), Path(tempfile.mkdtemp(dir=folder)))
    deadline = None if seconds is None else time.monotonic() + seconds
    following = {target.name: first for target in targets}
    stop = None if executions is None else first + executions
    slice_seconds = 10.0 if seconds is None else max(0.5, min(10.0, seconds * processes / len(targets) / 2))
    waiting, running = list(targets), []
    while waiting or running:
        while waiting and len(running) < processes:
            target = waiting.pop(0)
            start = following[target.name]
            left = slice_seconds if deadline is None else min(slice_seconds, deadline - time.monotonic())
            if left > 0 or start == first:
                running.append(_Slice(target, seed, range(start, stop or 1 << 62), max(left, 0.2)))
        over = [slice_ for slice_ in running if slice_.is_over()]
        for slice_ in over:
            running.remove(slice_)
            following[slice_.target.name] = slice_.report(tally)
            if (stop is None or following[slice_.target.name] < stop) and (
                deadline is None or time.monotonic() < deadline
            ):
                waiting.append(slice_.target)
            yield tally
        if not over:
            time.sleep(0.01)
