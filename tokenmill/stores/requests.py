"""Requests in threads: several run at once, and Ctrl-C does not wait for an answer.

Each request has a thread of its own, so requests may start other requests. The threads are daemons, so an interrupted
process does not wait for a server that is gone.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

from tokenmill.errors import without_panic
from tokenmill.stores.store import Bytes
from tokenmill.stores.system import start_thread

REQUEST_BYTES = 12 << 20  # large enough that the latency of a request hardly counts
PASSED_BYTES = 1 << 20  # a gap of this size is cheaper to read than to skip by another request
_ATTEMPTS = 6
_MAX_PARALLEL = 8
_END_SECONDS = 3.0

_Result = TypeVar("_Result")

_running: set[Future[Any]] = set()


def start(request: Callable[[], _Result]) -> Future[_Result]:
    """Start a request in another thread. Raise OSError or MemoryError if the system denies the thread."""
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(_result(request))
        except BaseException as error:
            future.set_exception(error)
        finally:
            _running.discard(future)

    _running.add(future)
    try:
        start_thread(threading.Thread(target=run, daemon=True, name="store request"))
    except BaseException:
        _running.discard(future)
        raise
    return future


def call(request: Callable[[], _Result]) -> _Result:
    """Return the result of a request. Ctrl-C, which only reaches the main thread, interrupts the wait."""
    is_main = threading.current_thread() is threading.main_thread()
    return start(request).result() if is_main else _result(request)


def _result(request: Callable[[], _Result]) -> _Result:
    try:
        return request()
    except BaseException as error:
        raise without_panic(error) from error.__cause__


def call_again(request: Callable[[], _Result], is_retried: Callable[[Exception], bool]) -> _Result:
    """Return the result of a request, which is sent up to 6 times with growing pauses."""
    for attempt in range(_ATTEMPTS):
        try:
            return call(request)
        except Exception as error:
            if not is_retried(error) or attempt == _ATTEMPTS - 1:
                raise
        time.sleep(0.2 * 2**attempt)
    raise AssertionError


@atexit.register
def _finish_running() -> None:
    """Wait for requests that are still running: a thread would abort the process if its interpreter were gone."""
    wait(tuple(_running), _END_SECONDS)


os.register_at_fork(after_in_child=_running.clear)  # a forked child has none of its parent's threads


def read_joined(read: Callable[[int, int], Bytes], ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
    """Return the bytes of each [start, stop), up to the end of the object.

    read(start, stop) is called for spans that join near ranges and are split into parallel requests.
    """
    spans: list[tuple[int, int]] = []
    for first, stop in sorted(pair for pair in ranges if pair[0] < pair[1]):
        if spans and first <= spans[-1][1] + PASSED_BYTES:
            spans[-1] = spans[-1][0], max(spans[-1][1], stop)
        else:
            spans.append((first, stop))
    cuts = [range(first, stop, REQUEST_BYTES) for first, stop in spans]
    blocks = _read_all(read, [(at, min(at + REQUEST_BYTES, cut.stop)) for cut in cuts for at in cut])
    starts = [cut.start for cut in cuts]
    held: list[memoryview] = []
    for cut in cuts:
        parts = [blocks.popleft() for _ in cut]
        held.append(memoryview(parts[0] if len(parts) == 1 else b"".join(parts)))

    def part(first: int, stop: int) -> Bytes:
        span = bisect_right(starts, first) - 1
        return held[span][first - starts[span] : stop - starts[span]] if first < stop else b""

    return [part(first, stop) for first, stop in ranges]


def _read_all(read: Callable[[int, int], Bytes], spans: list[tuple[int, int]]) -> deque[Bytes]:
    if len(spans) == 1:
        return deque([read(*spans[0])])
    results: deque[Bytes] = deque()
    running: deque[Future[Bytes]] = deque()
    for span in spans:
        if len(running) == _MAX_PARALLEL:
            results.append(running.popleft().result())
        running.append(start(partial(read, *span)))
    results.extend(future.result() for future in running)
    return results
