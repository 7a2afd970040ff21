"""The first signal stops work that may end at once and is deferred elsewhere. The second one always raises."""

from __future__ import annotations

import signal

import pytest

from bpe.cli.stop_signals import StopSignals
from bpe.errors import Stopped

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_the_first_signal_is_deferred_and_the_second_raises(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    with StopSignals() as signals:
        assert signals.at_once(lambda: 5) == 5
        signal.raise_signal(number)
        assert signals.exit_code == code
        with pytest.raises(Stopped) as stopped:
            signal.raise_signal(number)
        assert stopped.value.exit_code == code
    assert signal.getsignal(number) is before


def test_work_stops_at_once_and_does_not_begin_after_a_signal() -> None:
    done = []
    with StopSignals() as signals:
        with pytest.raises(Stopped):
            signals.at_once(lambda: [signal.raise_signal(signal.SIGTERM), done.append(1)])
        with pytest.raises(Stopped) as stopped:
            signals.at_once(lambda: done.append(2))
        assert (done, stopped.value.exit_code) == ([], 143)


@pytest.mark.parametrize("number", [number for number, _ in SIGNALS])
def test_an_ignored_signal_stays_ignored(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            signal.raise_signal(number)
            assert signals.at_once(lambda: 5) == 5
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
