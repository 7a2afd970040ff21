"""What is told at the end of a count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bpe.pretoken_counts.uncut_separator import uncut_note
from bpe.progress import Progress
from bpe.tokenizer import END_OF_TEXT
from tokenmill.errors import printable
from tokenmill.inputs.sizes import counted


class Skipped(NamedTuple):
    """Bad records with one reason. first: (source, row or byte, "row" or "byte" or "" for a file) of the first one."""

    reason: str
    records: int
    first: tuple[str, int, str]

    @property
    def line(self) -> str:
        """ "malformed: 2, first in a.jsonl at byte 17"."""
        source, offset, unit = self.first
        at = f" at {unit} {offset}" if unit else ""
        return f"{self.reason}: {self.records:,}, first in {printable(source)}{at}"


class Tally(NamedTuple):
    """The notices at the end of a count: U+FFFD put in, bad records left out, separators that did not cut."""

    replaced: int = 0
    skipped: tuple[Skipped, ...] = ()
    uncut: int = 0

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        own = {skipped.reason: skipped for skipped in self.skipped}
        for reason, count, first in other.skipped:
            if reason in own:
                count, first = count + own[reason].records, min(first, own[reason].first)
            own[reason] = Skipped(reason, count, first)
        return Tally(self.replaced + other.replaced, tuple(own.values()), self.uncut + other.uncut)

    def tell(self, progress: Progress | None, special_tokens: Sequence[str]) -> None:
        """A line for each that there is."""
        if progress is not None:
            for line in self.lines(special_tokens):
                progress.note(line)

    def lines(self, special_tokens: Sequence[str] = ()) -> Iterator[str]:
        """The same as text."""
        if self.replaced:
            yield f"replaced {counted(self.replaced, 'byte sequence')} with U+FFFD (invalid UTF-8)"
        if self.skipped:
            count = sum(skipped.records for skipped in self.skipped)
            reasons = "; ".join(skipped.line for skipped in sorted(self.skipped))
            yield f"skipped {counted(count, 'bad record')} ({reasons})"
        if self.uncut and END_OF_TEXT not in special_tokens:
            yield uncut_note(self.uncut)
