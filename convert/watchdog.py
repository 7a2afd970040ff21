"""Workers that hang: told from those that are only slow by the processor time they use.

A worker at work uses some in every second; one that waits for a lock nobody will open or for a disk that does not
answer uses none. Only time in which this process ran too counts, a second at a time: neither a laptop's sleep nor a
stopped process group makes workers look dead. Linux only; elsewhere nothing is ever stalled.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

_MOST_SECONDS = 2.0  # of one look at the clock: what is beyond it, this process was not there


class Watch:
    """Looks at processes now and then. seconds: how long without processor time is too long, 0 for never."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = time.monotonic()
        self._seen: dict[
            int, tuple[int, int, float]
        ] = {}  # process -> answers, ticks, seconds without change

    def stalled(self, answers: Mapping[int, int]) -> Iterator[int]:
        """Those of the busy processes, given with the number of their answers, that hang. To be called every second."""
        if not self._seconds:
            return
        now = time.monotonic()
        if now - self._last < 0.5:
            return
        elapsed, self._last = min(now - self._last, _MOST_SECONDS), now
        seen = {}
        for pid, answered in answers.items():
            ticks = processor_ticks(pid)
            if ticks is None:
                continue
            known = self._seen.get(pid)
            idle = known[2] + elapsed if known is not None and known[:2] == (answered, ticks) else 0.0
            seen[pid] = (answered, ticks, idle)
        self._seen = seen
        yield from [pid for pid, (_, _, idle) in seen.items() if idle >= self._seconds]


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
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        faulthandler.register(signal.SIGUSR1, file=descriptor, all_threads=True)
    except (OSError, AttributeError, ValueError):
        return  # a help for people, not worth an error


def dump_stack(pid: int, path: Path) -> bool:
    """Ask a process for its stacks; whether they came within half a second."""
    try:
        before = path.stat().st_size
        os.kill(pid, signal.SIGUSR1)
        for _ in range(10):
            time.sleep(0.05)
            if path.stat().st_size > before:
                return True
    except OSError:
        pass
    return False
