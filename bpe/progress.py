"""Progress of training and counting: one bar per phase on a terminal, one line per phase in a log.

Pass a TrainingProgress, or your own Progress, to `bpe.train(progress=...)`.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol, TextIO

from tokenmill.cli.progress import new_bar, say
from tokenmill.inputs.sizes import bytes_text


class Progress(Protocol):
    """Interface through which training and counting report their progress."""

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        """Start a phase: "counting" in "bytes", then "merging" in "entries". total: None if unknown."""

    def update(self, done: int) -> None:
        """Set the number of units done in this phase. It never decreases. An exception raised here ends the work."""

    def note(self, text: str) -> None:
        """Report one line that the user should read, such as an early end of training."""


class TrainingProgress:
    """Context manager that writes progress to stderr and ends the last phase on exit."""

    def __init__(self, quiet: bool = False, file: TextIO | None = None) -> None:
        self._quiet = quiet
        self._file = file or sys.stderr
        self._bar: Any = None
        self._phase = ""
        self._unit = ""
        self._done = 0
        self._started = 0.0
        self._notes: list[str] = []

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        """End the current phase and start one of `total` units ("bytes" or "entries"; None: unknown)."""
        self._end_phase()
        self._phase, self._unit, self._done, self._started = phase, unit, 0, time.perf_counter()
        if not self._quiet and self._file.isatty():
            self._bar = new_bar(phase, total, self._file, unit)

    def update(self, done: int) -> None:
        """Set the number of units done in this phase."""
        if self._bar is not None:
            self._bar.update(done - self._done)
        self._done = done

    def note(self, text: str) -> None:
        """Report a line that the user should read. It is shown after the current phase, even with quiet=True."""
        self._notes.append(text)

    def _end_phase(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        elif self._phase and not self._quiet:
            seconds = time.perf_counter() - self._started
            amount = (
                f"{bytes_text(self._done)}, {bytes_text(self._done / max(seconds, 1e-9))}/s"
                if self._unit == "bytes"
                else f"{self._done:,} {self._unit}"
            )
            say(self._file, f"{self._phase}: {amount}, {seconds:.1f} s")
        self._phase = ""
        for note in self._notes:
            say(self._file, f"tokenmill: note: {note}")
        self._notes.clear()

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._bar is None:
            self._phase = ""  # an unfinished phase prints no summary
        self._end_phase()
