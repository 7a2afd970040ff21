"""Workers that hang: told from those that are only slow by the processor time they use and the steps they report.

A worker at work uses some in every second; one that waits for a lock nobody will open or for a disk that does not
answer uses none. One in an endless loop uses it all, but takes no step: a worker reports one for each MiB or so of
text, and the processor time since the last is counted, so neither a slow machine nor many other programs make it look
dead. Only time in which this process ran too counts as idle, a second at a time: neither a laptop's sleep nor a stopped
process group is taken for a hang. Linux only; elsewhere nothing is ever stalled.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_ASKING = (signal.SIGUSR1,)  # a process for its stacks
_MOST_SECONDS = 2.0  # of one look at the clock: what is beyond it, this process was not there


class _Seen(NamedTuple):
    """Of a worker at the last look; idle: seconds without processor time; since: its ticks at its last step."""

    steps: int
    ticks: int
    idle: float
    since: int


class Watch:
    """Looks at processes now and then. seconds: how long without processor time, or how much of it without a step, is
    too much; 0 for never."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = time.monotonic()
        self._seen: dict[int, _Seen] = {}

    def stalled(self, steps: Iterable[tuple[int, int]]) -> Iterator[tuple[int, str]]:
        """Those of the busy processes, given as (id, number of steps), that hang, and how that was noticed.

        To be called every second; more often is no cost."""
        if not self._seconds:
            return
        now = time.monotonic()
        if now - self._last < 0.5:
            return
        elapsed, self._last = min(now - self._last, _MOST_SECONDS), now
        before, self._seen = self._seen, {}
        for pid, count in steps:
            ticks = processor_ticks(pid)
            if ticks is None:
                continue
            known = before.get(pid)
            if known is None or known.steps != count:
                self._seen[pid] = _Seen(count, ticks, 0.0, ticks)
            else:
                idle = known.idle + elapsed if ticks == known.ticks else 0.0
                self._seen[pid] = _Seen(count, ticks, idle, known.since)
        for pid, seen in self._seen.items():
            if seen.idle >= self._seconds:
                yield pid, f"used no CPU time for {self._seconds:g} s"
            elif (seen.ticks - seen.since) / os.sysconf("SC_CLK_TCK") >= self._seconds:
                yield pid, f"made no progress in {self._seconds:g} s of CPU time"


def processor_ticks(pid: int) -> int | None:
    """The processor time of a process, all its threads, in the system's ticks; None where that cannot be known."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return None


def let_stack_be_dumped(path: Path) -> None:
    """From now on SIGUSR1 makes this process add to the file where each of its threads is."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        for number in _ASKING:
            faulthandler.register(number, file=descriptor, all_threads=True)
    except (OSError, AttributeError, ValueError):
        return  # a help for people, not worth an error


def dump_stack(pid: int, path: Path) -> bool:
    """Ask a process for its stacks; whether they came within half a second."""
    try:
        before = path.stat().st_size
        for number in _ASKING:
            os.kill(pid, number)
        for _ in range(10):
            time.sleep(0.05)
            if path.stat().st_size > before:
                return True
    except OSError:
        pass
    return False
