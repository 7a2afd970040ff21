"""Requests that run beside the caller: so that several are under way at once, and a Ctrl-C is not kept waiting.

Each runs in a thread that ended another one before, or in a new one, so that none waits for a thread, whatever it was
begun by. They are daemons: a process that is interrupted must not wait until a server that is gone was asked often
enough.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

from tokenmill.errors import LibraryPanic, without_panic
from tokenmill.stores.store import Bytes
from tokenmill.stores.system import after_fork_in_child, start_thread

REQUEST_BYTES = 12 << 20  # of a long read: the time to the first byte is a small part, and a GB takes few
PASSED_BYTES = (
    1 << 20
)  # what lies between two ranges is fetched too if it is no more: cheaper than another request
_AT_ONCE = 8
_END_SECONDS = 3.0

_Result = TypeVar("_Result")
_MOST_IDLE = 64  # threads that are kept; a window of a loader takes that many requests

_running: set[Future[Any]] = set()
_idle: deque[SimpleQueue[Callable[[], None]]] = deque()  # of threads that wait for what to run


def start(request: Callable[[], _Result]) -> Future[_Result]:
    """Begin a request in another thread."""
    future: Future[_Result] = Future()

    def run() -> None:
        try:
            future.set_result(request())
        except BaseException as error:
            future.set_exception(without_panic(error))
        finally:
            _running.discard(future)

    _running.add(future)
    try:
        _idle.pop().put(run)
    except IndexError:
        try:
            start_thread(threading.Thread(target=_serve, args=([run],), daemon=True, name="store requests"))
        except BaseException:  # of as many threads as the system allows, for instance
            _running.discard(future)
            raise
    return future


def _serve(first: list[Callable[[], None]]) -> None:
    """One thread: what it was started for, then what comes. Nothing of it is held while the thread is idle."""
    own: SimpleQueue[Callable[[], None]] = SimpleQueue()
    first.pop()()
    while len(_idle) < _MOST_IDLE:
        _idle.append(own)
        own.get()()


def call(request: Callable[[], _Result]) -> _Result:
    """The result of a request; in the main thread, which alone a Ctrl-C reaches, it can be interrupted."""
    if threading.current_thread() is threading.main_thread():
        return start(request).result()
    try:
        return request()
    except BaseException as error:
        if isinstance(panic := without_panic(error), LibraryPanic):
            raise panic from None
        raise


@atexit.register
def _let_finish() -> None:
    """Requests that nobody waits for any more may still come to their end: a thread that asks for the interpreter
    when it is gone would abort the process."""
    wait(tuple(_running), _END_SECONDS)


@after_fork_in_child
def _forget_threads() -> None:
    """The child has none of them."""
    _running.clear()
    _idle.clear()


def read_joined(read: Callable[[int, int], Bytes], ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
    """The bytes of each [start, stop), by read(start, stop) of ranges that join neighbours and cut what is long.

    Fewer bytes where the object ends before; several requests are under way at once.
    """
    spans: list[list[int]] = []
    for begin, stop in sorted(pair for pair in ranges if pair[0] < pair[1]):
        if spans and begin <= spans[-1][1] + PASSED_BYTES:
            spans[-1][1] = max(spans[-1][1], stop)
        else:
            spans.append([begin, stop])
    cuts = [
        [(place, min(place + REQUEST_BYTES, stop)) for place in range(begin, stop, REQUEST_BYTES)]
        for begin, stop in spans
    ]
    results = _at_once(read, [request for requests in cuts for request in requests])
    held: list[tuple[int, memoryview]] = []
    for requests in cuts:
        blocks = [results.popleft() for _ in requests]
        held.append((requests[0][0], memoryview(blocks[0] if len(blocks) == 1 else b"".join(blocks))))
    return [_part(held, begin, stop) for begin, stop in ranges]


def _at_once(read: Callable[[int, int], Bytes], wanted: list[tuple[int, int]]) -> deque[Bytes]:
    if len(wanted) == 1:
        return deque([read(*wanted[0])])
    results: deque[Bytes] = deque()
    futures: deque[Future[Bytes]] = deque()
    for begin, stop in wanted:
        if len(futures) == _AT_ONCE:
            results.append(futures.popleft().result())
        futures.append(start(lambda begin=begin, stop=stop: read(begin, stop)))  # type: ignore[misc]
    results.extend(future.result() for future in futures)
    return results


def _part(held: list[tuple[int, memoryview]], begin: int, stop: int) -> Bytes:
    if begin >= stop:
        return b""
    place, block = next((place, block) for place, block in reversed(held) if place <= begin)
    return block[begin - place : stop - place]
