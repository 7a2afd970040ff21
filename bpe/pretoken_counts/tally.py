"""The summary of replaced bytes and skipped records, printed after counting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bpe.progress import Progress
from tokenmill.errors import printable
from tokenmill.inputs.sizes import counted


class Skipped(NamedTuple):
    """Bad records with the same reason.

    first: (source, offset, unit) of the first one; the unit is "row", "byte", or "" for a whole file.
    """

    reason: str
    records: int
    first: tuple[str, int, str]

    @property
    def line(self) -> str:
        """Return a text such as "malformed: 2, first in a.jsonl at byte 17"."""
        source, offset, unit = self.first
        at = f" at {unit} {offset}" if unit else ""
        return f"{self.reason}: {self.records:,}, first in {printable(source)}{at}"


class Tally(NamedTuple):
    """The number of inserted U+FFFD, and the bad records that were skipped."""

    replaced: int = 0
    skipped: tuple[Skipped, ...] = ()

    def plus(self, other: Tally) -> Tally:
        """Return the sum of both."""
        own = {skipped.reason: skipped for skipped in self.skipped}
        for reason, count, first in other.skipped:
            if reason in own:
                count, first = count + own[reason].records, min(first, own[reason].first)
            own[reason] = Skipped(reason, count, first)
        return Tally(self.replaced + other.replaced, tuple(own.values()))

    def report_to(self, progress: Progress | None) -> None:
        """Pass the lines to `progress.note`."""
        if progress is not None:
            for line in self.lines():
                progress.note(line)

    def lines(self) -> Iterator[str]:
        """Yield one line per kind of notice."""
        if self.replaced:
            yield f"replaced {counted(self.replaced, 'byte sequence')} with U+FFFD (invalid UTF-8)"
        if self.skipped:
            count = sum(skipped.records for skipped in self.skipped)
            reasons = "; ".join(skipped.line for skipped in sorted(self.skipped))
            yield f"skipped {counted(count, 'bad record')} ({reasons})"
