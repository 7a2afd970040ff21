"""Where the time of a conversion or of a task goes, step by step; the summary adds up what all tasks took."""

from __future__ import annotations

import time


class Clock:
    """Adds up where the time goes: `lap("encode")` books the time since the last lap. seconds: by step, in order."""

    def __init__(self) -> None:
        self.start()

    def start(self, started: float | None = None) -> None:
        """Nothing is booked yet, and the first lap begins now, or began at this time.perf_counter()."""
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter() if started is None else started

    def lap(self, step: str) -> None:
        """The time since the last lap went there."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now
