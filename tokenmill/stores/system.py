"""Threads that start or fail but never block, for several packages."""

from __future__ import annotations

import errno
import functools
import mmap
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final, TypeVar

_THREAD_BYTES: Final = 12 << 20  # a stack of 8 MiB by default, and the first objects of the thread

T = TypeVar("T")


def start_thread(thread: threading.Thread) -> None:
    """Start a thread. Raise OSError if the system denies it, and MemoryError if there is no room for its stack.

    Thread.start blocks forever if the new thread runs out of memory at once, so this first checks for room.
    """
    try:
        mmap.mmap(-1, _THREAD_BYTES, flags=mmap.MAP_PRIVATE).close()
    except OSError:
        raise MemoryError from None
    try:
        thread.start()
    except RuntimeError:
        raise OSError(errno.EAGAIN, "cannot start a thread") from None


class cached_property(functools.cached_property[T]):  # noqa: N801 - replaces functools.cached_property
    """functools.cached_property without the class-wide lock of Python 3.11.

    A forked child would wait forever for a lock that another thread of its parent held. Two threads may compute the
    value twice, as in Python 3.12.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        self.lock = nullcontext()
