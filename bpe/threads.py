"""How many threads: what callers ask for, and the cores there are."""

from __future__ import annotations

import os
from typing import Final

from bpe.errors import BadArgument, check_whole

MAX_THREADS: Final = 4096  # more than any machine has cores; a typing error must not start a million threads


def available_threads() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """The threads to use: None for the cores this process may run on. BadArgument if below 1."""
    if threads is None:
        return available_threads()
    check_whole("threads", threads)
    if threads < 1:
        raise BadArgument(f"threads must be at least 1, got {threads}")
    return min(threads, MAX_THREADS)  # the core counts in 32 bits


def check_threads(threads: int | None) -> None:
    """Nothing, or BadArgument if that is no number of threads, or above MAX_THREADS; None is one."""
    thread_count(threads)
    if threads is not None and threads > MAX_THREADS:
        raise BadArgument(f"threads must be at most {MAX_THREADS}, got {threads}")
