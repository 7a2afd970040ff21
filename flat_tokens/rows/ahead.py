"""Work that is begun before it is asked for: in a thread, or on one processor only when it is asked for.

A child of a fork has no thread but the one that forked, so what the others had begun never ends there: what is to be
yielded is begun anew (run_ahead), and nothing is imported by a thread, since the child would wait for ever for the lock
of a module that another thread was importing.

Where a process may use one processor alone, a thread that decodes takes the time of the one that trains, and the two
drive each other's data out of the cache.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import numpy.ma  # noqa: F401 - np.unique imports it late, in whatever thread calls it first

T = TypeVar("T")
Result = TypeVar("Result", covariant=True)


class Pending(Protocol[Result]):
    """Something that is or will be done."""

    def result(self) -> Result:
        """What it came to, or its error raised; waits for it, or does it."""
        ...


class _Later(Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work

    def result(self) -> T:
        return self._work()


class Ahead:
    """`begin` takes work; is_threaded: whether a thread does it meanwhile."""

    def __init__(self, thread: ThreadPoolExecutor | None) -> None:
        self._thread = thread
        self.is_threaded = thread is not None

    def begin(self, work: Callable[[], T]) -> Pending[T]:
        """Begin with some work after that which was begun before."""
        return _Later(work) if self._thread is None else self._thread.submit(work)


@contextmanager
def working_ahead(prefetch: bool | None) -> Iterator[Ahead]:
    """An Ahead with a thread or, for None on one processor and for False, without."""
    if prefetch or (prefetch is None and len(os.sched_getaffinity(0)) > 1):
        process = os.getpid()
        thread = ThreadPoolExecutor(1, "flat_tokens-prefetch")
        # Held here: a pass that is dropped as the interpreter ends finds its module emptied, and its thread has ended.
        current_process, is_ending = os.getpid, sys.is_finalizing
        try:
            yield Ahead(thread)
        finally:
            if not is_ending():
                thread.shutdown(wait=current_process() == process)
    else:
        yield Ahead(None)


def run_ahead(run: Callable[[int, Ahead], Iterator[T]], step: int, prefetch: bool | None) -> Iterator[T]:
    """What run(step, ahead) yields, one item a step. A child of a fork goes on where the parent was, by a run of its
    own from the next step on. prefetch: see working_ahead."""
    is_forked = True
    while is_forked:
        is_forked = False
        process = os.getpid()
        with working_ahead(prefetch) as ahead:
            for item in run(step, ahead):
                step += 1
                yield item
                del item  # its memory may be used for the next one
                if os.getpid() != process:
                    is_forked = True
                    break
