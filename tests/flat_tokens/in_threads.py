"""Run the same work in several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run work(0), work(1), ... in one thread each, started together, and raise the first error."""
    together = threading.Barrier(count)

    def begin(number: int) -> None:
        together.wait()
        work(number)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(begin, range(count)))
