"""What operating systems do differently: Linux, macOS and Windows, in one file.

No other module of the packages calls what one of these systems lacks: tests/stores/test_system.py reads them all. Where
a system has no such thing, the docstring says what is done instead. Nothing was tried on Windows itself.
"""

from __future__ import annotations

import errno
import functools
import mmap
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TypeVar

# Flags of os.open. Windows knows text files, and none of the others.
BINARY: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # not inherited, bytes as they are
NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)  # for a pipe that nobody writes to

HAS_PIPES_TO_WAIT_FOR: Final = hasattr(signal, "pthread_sigmask")  # and signals that can be held back
_LOCKED_BYTE: Final = 2**31 - 2  # of a lock file on Windows, where what is locked can't be read
_NO_SYNC: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
_THREAD_BYTES: Final = 12 << 20  # a stack, which has 8 MiB where nobody says otherwise, and the first objects
_seek_lock = threading.Lock()

T = TypeVar("T")


# -- processors and memory


def usable_cores() -> int:
    """The cores this process may run on; outside Linux all there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def page_bytes() -> int:
    """The size of a page of memory."""
    return os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def physical_bytes() -> int | None:
    """The memory of the machine; None: not known."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * page_bytes()
    except (AttributeError, OSError, ValueError):
        return None


def ticks_a_second() -> int:
    """Of the processor times in /proc."""
    return os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def peak_bytes() -> int:
    """The most memory that the process took; 0: not known."""
    try:
        import resource
    except ModuleNotFoundError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def address_space_limit() -> int | None:
    """`ulimit -v` in bytes; None: none."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def start_thread(thread: threading.Thread) -> None:
    """Start it. RuntimeError where the system gives no thread, MemoryError where there is no address space for one.

    Thread.start waits for ever for a thread that finds no memory as it begins, so what that takes is asked for first;
    on Windows it is not.
    """
    if hasattr(mmap, "MAP_PRIVATE"):
        try:
            mmap.mmap(-1, _THREAD_BYTES, flags=mmap.MAP_PRIVATE).close()
        except OSError:
            raise MemoryError from None
    thread.start()


# -- who and where


def host_name() -> str:
    """The name of this machine."""
    if hasattr(os, "uname"):
        return os.uname().nodename
    import platform

    return platform.node()


def user_name() -> str:
    """Who runs this process, for the name of a file."""
    if hasattr(os, "getuid"):
        return str(os.getuid())
    import getpass

    return getpass.getuser()


def is_own(status: os.stat_result) -> bool:
    """Whether a file is of the user of this process; on Windows it is taken to be."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


# -- files


def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> None:
    """Lock a file until it is closed, however its holder ends; BlockingIOError where another has it, OSError where the
    file system has no locks. wait: until it is free. On Windows a shared lock keeps others out as well."""
    try:
        import fcntl
    except ModuleNotFoundError:
        _lock_byte(descriptor, wait)
    else:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)


def _lock_byte(descriptor: int, wait: bool) -> None:
    import msvcrt

    calls: Any = msvcrt
    os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
    try:
        calls.locking(descriptor, calls.LK_LOCK if wait else calls.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from None
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def read_into(descriptor: int, view: memoryview, offset: int) -> int:
    """Bytes of a file from `offset` on put into `view`; how many. On Windows one thread at a time."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [view], offset)
    with _seek_lock:
        os.lseek(descriptor, offset, os.SEEK_SET)
        data = os.read(descriptor, len(view))
    view[: len(data)] = data
    return len(data)


def read_at(descriptor: int, length: int, offset: int) -> bytes:
    """At most `length` bytes of a file from `offset` on. On Windows one thread at a time."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    with _seek_lock:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, length)


def write_at(descriptor: int, data: memoryview, offset: int) -> int:
    """Bytes put into a file from `offset` on; how many of them. On Windows one thread at a time."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, offset)
    with _seek_lock:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)


def sync(path: str | os.PathLike[str]) -> None:
    """Return when the bytes of a file, or the names in a folder, are on the disk. Windows opens no folders, and keeps
    names in a journal of its own; it syncs only what is open for writing. A network disk may have no way to sync a
    folder."""
    if hasattr(os, "O_DIRECTORY"):
        flags = os.O_RDONLY
    elif os.path.isdir(path):  # noqa: PTH112
        return
    else:
        flags = os.O_RDWR
    descriptor = os.open(path, flags | BINARY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC or not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise
    finally:
        os.close(descriptor)


# -- processes and signals


def before_fork(function: Callable[[], None]) -> None:
    """Call it in the process that forks, before each fork; where nothing forks, never."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=function)


def after_fork_in_child(function: Callable[[], None]) -> None:
    """Call it in the child of each fork; where nothing forks, never."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


class cached_property(functools.cached_property[T]):  # noqa: N801 - it stands for that one
    """functools.cached_property without the lock that Python 3.11 has for all objects of a class: the child of a fork
    would wait for ever where a thread of its parent was working one out. Two threads may do so twice, as from Python
    3.12 on."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        self.lock = nullcontext()


def signals(*names: str) -> tuple[signal.Signals, ...]:
    """Those of these signals that the system has."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


@contextmanager
def held_back(stops: Iterable[int]) -> Iterator[None]:
    """Within it, these signals wait for this thread, and for processes that it starts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through(stops: Iterable[int]) -> None:
    """The end of `held_back`, in a process that was started within it."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stops)
