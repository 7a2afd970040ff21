"""A call beside other work gives its result or its error, and its thread is gone afterwards."""

from __future__ import annotations

import threading

import pytest

from tokenmill.engines.background_call import BackgroundCall
from tokenmill.engines.process_engine import may_fork


def test_the_result_comes_after_the_other_work() -> None:
    begun = threading.Event()
    with BackgroundCall(lambda: begun.wait(5)) as aside:
        begun.set()
    assert aside.result() is True


def test_its_error_waits_for_the_result() -> None:
    def fail() -> None:
        raise ValueError("of the call")

    with BackgroundCall(fail) as aside:
        pass
    with pytest.raises(ValueError, match="of the call"):
        aside.result()


def test_the_error_of_the_other_work_goes_first() -> None:
    ended: list[int] = []
    with pytest.raises(KeyError, match="of the work"), BackgroundCall(lambda: ended.append(1)):
        raise KeyError("of the work")
    assert ended == [1]


def test_workers_may_be_forked_afterwards() -> None:
    if not may_fork():
        pytest.skip("this process has other threads, or cannot fork")
    for _ in range(50):
        with BackgroundCall(lambda: None) as aside:
            pass
        assert aside.result() is None
        assert may_fork()
