"""The progress of training for people: a bar a phase on a terminal, a line a phase in a log, nothing when quiet.

It is what `bpe.training.train` takes as `progress`: begin(phase, total, unit), update(done so far), note(text).
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol, TextIO

from tokenmill.cli.progress import new_bar, say
from tokenmill.inputs.sizes import bytes_text


class Progress(Protocol):
    """What training and counting report; a tqdm bar for each phase fits behind it."""

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        """A phase starts: "counting" in "bytes", then "merging" in "entries"; total None: not known."""

    def update(self, done: int) -> None:
        """So many units of the phase are done; never less than the last time. What this raises ends the work."""

    def note(self, text: str) -> None:
        """One line the user should read: bytes replaced, training that stopped early."""


class TrainingProgress:
    """Used as a context; leaving it ends the last phase. Writes to stderr only."""

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
        """A phase of `total` units ("bytes" or "entries"; None: not known) starts; the one before is over."""
        self._end_phase()
        self._phase, self._unit, self._done, self._started = phase, unit, 0, time.perf_counter()
        if not self._quiet and self._file.isatty():
            self._bar = new_bar(phase, total, self._file, unit)

    def update(self, done: int) -> None:
        """`done` units of the phase are done, all together."""
        if self._bar is not None:
            self._bar.update(done - self._done)
        self._done = done

    def note(self, text: str) -> None:
        """A line that the user should read; shown even when quiet, and after the phase that it is about."""
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
            self._phase = ""  # an unfinished phase is no line of success
        self._end_phase()
