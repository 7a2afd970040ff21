"""Read ahead in one background thread, or on demand if the process may use only one processor.

On one processor, a thread that decodes would take time from the thread that trains, and evict its data from the cache.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy.ma  # noqa: F401 - np.unique imports it late: a fork during that import would leave its lock held

Start = Callable[[Callable[[], Any]], Callable[[], Any]]


@contextmanager
def reading_ahead(prefetch: bool | None) -> Iterator[Start]:
    """start(work) begins some work, and returns a function that waits for its result or raises its error.

    prefetch: True for a thread, False to work when the result is requested, None for a thread if the process may use
        more than one processor.
    """
    if not (prefetch or (prefetch is None and len(os.sched_getaffinity(0)) > 1)):
        yield lambda work: work
        return
    is_finalizing = sys.is_finalizing  # bound here: modules may be cleared when the interpreter ends
    thread = ThreadPoolExecutor(1, "flat_tokens-prefetch")
    try:
        yield lambda work: thread.submit(work).result
    finally:
        if not is_finalizing():
            thread.shutdown()
