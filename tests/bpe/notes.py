"""A progress that collects the notes."""

from __future__ import annotations


class Notes:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def begin(self, phase: str, total: int | None, unit: str) -> None: ...

    def update(self, done: int) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)
