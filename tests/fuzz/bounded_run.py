"""Run a reader on an input with limits on memory, time, writes and other effects, and report violations.

A result, or a one-line error of the package's classes, is right. Anything else is wrong: another error, a MemoryError
at a limit on address space, more CPU time than the target's budget, a signal, a file written, another file opened, a
process started, a connection, or code executed. A seed and a number determine each input. Many inputs run in one
child process, and a child that ends early records the number of its input.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tokenmill.errors import TokenmillError

M_ARENA_MAX = -8  # mallopt: each thread's arena reserves 64 MiB of address space
MAX_SILENT_SECONDS = 120.0  # wall-clock limit for a child that hangs where its own timer cannot stop it
_FORBIDDEN = tuple(
    "os.system os.exec os.posix_spawn os.spawn os.fork subprocess.Popen pickle.find_class socket.connect socket.bind "
    "socket.getaddrinfo socket.sendto shutil. os.remove os.rename os.mkdir os.rmdir os.link os.symlink os.chmod "
    "os.truncate os.utime".split()
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

    def memory_bytes(self, size: int) -> int:
        """Return the memory limit for an input of `size` bytes."""
        return self.base_bytes + self.bytes_per_byte * size

    def seconds(self, size: int) -> float:
        """Return the CPU time limit for an input of `size` bytes."""
        return self.base_seconds + self.seconds_per_byte * size


class TookTooLong(BaseException):
    """The CPU time budget is spent; a BaseException, so that no reader catches it."""


class Forbidden(BaseException):
    """The reader did something no reader may do."""


_watching = False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    if event == "open":
        path, _, flags = arguments
        is_writing = isinstance(flags, int) and flags & _WRITING and path != os.devnull
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
    elif not event.startswith(_FORBIDDEN):
        return
    if not _is_import():
        raise Forbidden(f"{event} {arguments!r:.200}")


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
def _limited(memory_bytes: int, seconds: float) -> Iterator[None]:
    global _watching
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    endless = resource.RLIM_INFINITY
    if not IS_SANITIZED:  # its runtime reserves terabytes of address space
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + memory_bytes, endless))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, endless))
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


def run_one(target: Target, seed: str, number: int, folder: Path) -> tuple[str, bool]:
    """Return (violation, empty if none; whether the reader raised an allowed error). Call it after
    `prepare_process`.
    """
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    made = target.make(random.Random(f"{target.name} {seed} {number}"), folder)
    size = size_of(made)
    try:
        with _limited(target.memory_bytes(size), target.seconds(size)):
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


def run_inputs(target: Target, seed: str, numbers: range) -> tuple[list[str], int]:
    """Run inputs of a target in child processes. Return the violations, and the number of allowed errors."""
    with tempfile.TemporaryDirectory() as folder:  # builds the source material before children start
        target.make(random.Random(0), Path(folder))
    violations, refused = list[str](), 0
    while numbers:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            read_end, write_end = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(read_end)
                _run_child(target, seed, numbers, Path(folder), write_end)
            os.close(write_end)
            for line in _lines(read_end):
                what, was_refused = json.loads(line)
                refused += was_refused
                if what:
                    violations.append(f"seed {seed}, number {numbers.start}: {what}")
                numbers = numbers[1:]
            os.close(read_end)
            pid, status = os.waitpid(child, os.WNOHANG if numbers else 0)
            if not pid:  # it is silent, or has closed the pipe and is about to end
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
        if numbers:
            violations.append(
                f"seed {seed}, number {numbers.start}: the process ended with {os.waitstatus_to_exitcode(status)}"
            )
            numbers = numbers[1:]
    return violations, refused


def _run_child(target: Target, seed: str, numbers: range, folder: Path, answers: int) -> NoReturn:
    """Write one line per input, and exit."""
    try:
        prepare_process()
        for number in numbers:
            what, was_refused = run_one(target, seed, number, folder)
            os.write(answers, json.dumps([what[-3000:], was_refused]).encode() + b"\n")
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _lines(descriptor: int) -> Iterator[bytes]:
    """Yield lines until the writer ends or is silent for too long."""
    held = b""
    while select.select([descriptor], [], [], MAX_SILENT_SECONDS)[0]:
        block = os.read(descriptor, 1 << 16)
        if not block:
            return
        *lines, held = (held + block).split(b"\n")
        yield from lines
