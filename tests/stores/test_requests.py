"""Requests in other threads: each comes to its own end, whatever begins it, and at the end of the process they are
waited for."""

from __future__ import annotations

import os
import random
import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

from tokenmill.stores import requests


def test_requests_that_nobody_waits_for_come_to_their_end() -> None:
    goes_on = threading.Event()
    answer = requests.start(lambda: goes_on.wait(30))
    threading.Timer(0.2, goes_on.set).start()
    requests._let_finish()
    assert answer.done()


def test_threads_are_used_again_and_few_are_kept() -> None:
    """Many requests run at once; each begins others and waits for them. Some fail, some take long."""
    rng = random.Random(4)

    def request(depth: int, number: int) -> int:
        time.sleep(rng.random() / 500)
        inner = [requests.start(lambda n=n: request(depth - 1, n)) for n in range(3 * depth)]  # type: ignore[misc]
        total = sum(future.result() for future in inner)
        if number == 7:
            raise KeyError(number)
        return total + number

    def naive(depth: int, number: int) -> int:
        return number + sum(naive(depth - 1, n) for n in range(3 * depth))

    before = threading.active_count()
    used: set[int] = set()
    for _ in range(4):
        futures: list[Future[Any]] = [
            requests.start(lambda n=n: (used.add(threading.get_ident()), request(2, n))[1])  # type: ignore[func-returns-value, misc]
            for n in range(20)
        ]
        for number, future in enumerate(futures):
            if number == 7:
                with pytest.raises(KeyError):
                    future.result(60)
            else:
                assert future.result(60) == naive(2, number)
    until = time.monotonic() + 30
    while len(requests._idle) > requests._MOST_IDLE + 8 or requests._running:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert threading.active_count() <= before + requests._MOST_IDLE + 8
    assert len(used) < 80


def test_an_idle_thread_holds_nothing() -> None:
    class Large:
        pass

    import gc
    import weakref

    large = Large()
    gone = weakref.ref(large)
    assert requests.start(lambda kept=large: kept).result(30) is large  # type: ignore[misc]
    del large
    until = time.monotonic() + 30
    while gone() is not None:
        gc.collect()
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_child_of_a_fork_takes_threads_of_its_own() -> None:
    for future in [requests.start(lambda: time.sleep(0.01)) for _ in range(5)]:
        future.result(30)
    goes_on = threading.Event()
    running = requests.start(lambda: goes_on.wait(60))
    child = os.fork()
    if child == 0:
        answer = requests.start(lambda: 5).result(20)
        began = time.monotonic()
        requests._let_finish()  # what the parent had under way is none of the child's
        os._exit(answer if time.monotonic() - began < 2 else 1)
    goes_on.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    assert running.result(30)
