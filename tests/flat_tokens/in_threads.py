"""The same work in several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """work(0), work(1) ... each in a thread, begun together; the first error of any is raised."""
    together = threading.Barrier(count)

    def begin(number: int) -> None:
        together.wait()
        work(number)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(begin, range(count)))
