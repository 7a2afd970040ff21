"""Time per step of a run or of a task."""

from __future__ import annotations

import time


class Clock:
    """A stopwatch with named laps: `lap("encode")` adds the time since the last lap to `seconds["encode"]`."""

    def __init__(self) -> None:
        self.start()

    def start(self, started: float | None = None) -> None:
        """Reset all laps. started: the time.perf_counter() at which the first lap started (default: now)."""
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter() if started is None else started

    def lap(self, step: str) -> None:
        """Add the time since the last lap to a step."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now
