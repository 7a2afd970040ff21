"""What counts as a hang: no processor time, or too much of it without a step; and what does not."""

from __future__ import annotations

import os

import pytest

from tokenmill.engines import watchdog
from tokenmill.engines.watchdog import Watch, processor_ticks

HZ = os.sysconf("SC_CLK_TCK")
PID = 7


class Machine:
    """A clock and a process that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.ticks = 1000.0, 0
        monkeypatch.setattr(watchdog.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(watchdog, "processor_ticks", lambda _: self.ticks)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def looks(
    machine: Machine, watch: Watch, count: int, work: float, steps: int = 0, sleep: float = 1.0
) -> list[str]:
    """What is said in so many looks; between two of them the process works so long and takes so many steps."""
    said, taken = [], 0
    for _ in range(count):
        machine.now += sleep
        machine.ticks += round(work * HZ)
        taken += steps
        said += [why for _, why in watch.stalled([(PID, taken)])]
    return said


def test_no_processor_time(machine: Machine) -> None:
    watch = Watch(5)
    assert looks(machine, watch, 5, work=0) == []
    assert [" 5 s" in why for why in looks(machine, watch, 1, work=0)] == [True]


def test_processor_time_without_a_step(machine: Machine) -> None:
    watch = Watch(5)
    assert looks(machine, watch, 5, work=1) == []
    assert [" 5 s" in why for why in looks(machine, watch, 1, work=1)] == [True]


@pytest.mark.parametrize(("work", "steps"), [(1, 1), (0, 1), (0.01, 0)], ids=["steps", "steps alone", "slow"])
def test_who_gets_on_is_left_alone(machine: Machine, work: float, steps: int) -> None:
    assert looks(machine, Watch(5), 400, work=work, steps=steps) == []


def test_a_sleep_of_the_machine_is_no_hang(machine: Machine) -> None:
    assert looks(machine, Watch(5), 2, work=0, sleep=3600) == []


def test_one_that_ended_hides_no_other(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "processor_ticks", lambda pid: None if pid == 1 else 0)
    watch, said = Watch(1), []
    for _ in range(2):
        machine.now += 1
        said += watch.stalled([(1, 0), (PID, 0)])
    assert [pid for pid, _ in said] == [PID]


def test_never(machine: Machine) -> None:
    assert looks(machine, Watch(0), 1000, work=0) == []
    assert looks(machine, Watch(0), 1000, work=1) == []


def test_the_processor_time_of_this_process_grows_and_of_none_is_unknown() -> None:
    before = processor_ticks(os.getpid())
    assert before is not None
    while (now := processor_ticks(os.getpid())) == before:
        sum(range(10_000))
    assert now is not None
    assert now > before
    assert processor_ticks(2**22 + 1) is None
