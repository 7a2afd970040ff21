"""A progress that collects what is reported."""

from __future__ import annotations


class Notes:
    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None, str]] = []
        self.done: list[int] = []
        self.notes: list[str] = []

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        self.phases.append((phase, total, unit))

    def update(self, done: int) -> None:
        self.done.append(done)

    def note(self, text: str) -> None:
        self.notes.append(text)
