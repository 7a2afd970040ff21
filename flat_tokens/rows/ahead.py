"""Work that is begun before it is asked for: in a thread, or on one processor only when it is asked for.

Where a process may use one processor alone, a thread that decodes takes the time of the one that trains, and the two
drive each other's data out of the cache: 20 % more time for batches of compressed tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from flat_tokens.rows.parallel_fill import usable_cpus

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
    if prefetch or (prefetch is None and usable_cpus() > 1):
        with ThreadPoolExecutor(1, "flat_tokens-prefetch") as thread:
            yield Ahead(thread)
    else:
        yield Ahead(None)
