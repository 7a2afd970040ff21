"""Number of threads: the one that the caller passes, or the number of usable cores."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from bpe.control_group import quota_threads
from bpe.errors import check_range

MAX_THREADS: Final = 4096  # more than any machine has cores, so that a typo cannot start a million threads


def available_threads() -> int:
    """Return the number of cores this process may use, limited by the CPU quota of its control group."""
    cores = len(os.sched_getaffinity(0))
    return min(cores, _quota() or cores)


@cache
def _quota() -> int | None:
    return quota_threads()


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use (None: `available_threads`). Raise BadArgument if it is below 1."""
    if threads is None:
        return available_threads()
    check_range("threads", threads, 1)
    return min(threads, MAX_THREADS)  # the core counts in 32 bits


def check_threads(threads: int | None) -> None:
    """Raise BadArgument unless the value is None or a number of threads up to MAX_THREADS."""
    if threads is not None:
        check_range("threads", threads, 1, MAX_THREADS)
