"""Signals that end a run are exceptions in the process that asked for it, and in no other."""

from __future__ import annotations

import os
import time

import pytest

from tokenmill.engines.stop_signals import ENDING_SIGNALS, Stopped, stop_signals


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_signal_ends_the_process_by_an_exception_with_its_exit_code(number: int) -> None:
    def be_stopped() -> None:
        with stop_signals():
            os.kill(os.getpid(), number)
            time.sleep(5)

    with pytest.raises(Stopped) as caught:
        be_stopped()
    assert caught.value.exit_code == 128 + number


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_forked_process_ended_its_task_with_the_exception_and_lived_on(number: int) -> None:
    with stop_signals():
        child = os.fork()
        if not child:
            try:
                os.kill(os.getpid(), number)
                time.sleep(5)
            except BaseException:
                os._exit(7)
            os._exit(8)
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == number
