"""What is told at the end of a count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bpe.encoding import END_OF_TEXT
from bpe.pretoken_counts.uncut_separator import uncut_note
from bpe.progress import Progress
from corpus.sizes import counted


class Tally(NamedTuple):
    """The notices at the end of a count: U+FFFD put in, bad records left out, separators that did not cut."""

    replaced: int = 0
    skipped: int = 0
    uncut: int = 0

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(*map(int.__add__, self, other))

    def tell(self, progress: Progress | None, special_tokens: Sequence[str]) -> None:
        """A line for each that there is."""
        if progress is not None:
            for line in self.lines(special_tokens):
                progress.note(line)

    def lines(self, special_tokens: Sequence[str] = ()) -> Iterator[str]:
        """The same as text."""
        if self.replaced:
            what = "byte sequence that is" if self.replaced == 1 else "byte sequences that are"
            yield f"replaced by U+FFFD: {self.replaced:,} {what} not valid UTF-8"
        if self.skipped:
            yield f"left out: {counted(self.skipped, 'bad record')}"
        if self.uncut and END_OF_TEXT not in special_tokens:
            yield uncut_note(self.uncut)
