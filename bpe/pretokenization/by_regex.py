"""Split texts with the `regex` package, for patterns that cannot be compiled to tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bpe.errors import UncoveredText, UnsupportedPattern
from bpe.formats.byte_alphabet import to_bytes
from bpe.normalizers import Normalizer
from bpe.pretokenization.regex_matches import expression_of, parts_of
from bpe.pretokenization.stage import Cut
from bpe.pretokenization.stages import Phases


class RegexCutter:
    """Splits texts by phases. why: the reason they cannot be compiled, for the error if they cannot run here either."""

    def __init__(self, phases: Phases, why: str) -> None:
        import regex  # deferred: slow import, rarely needed

        if any(phase.asks_for_input for phase in phases.phases[1:]):
            raise UnsupportedPattern(why)
        self._from_alphabet = phases.from_alphabet
        self._steps: list[Normalizer | tuple[Cut, Any]] = []
        for number, phase in enumerate(phases.phases):
            if number > 0 and phase.change is not None:
                self._steps.append(phase.change)
            self._steps += [(cut, regex.compile(expression_of(cut.tree))) for cut in phase.cuts]

    def cut(self, text: str) -> Iterator[bytes]:
        """Yield the pretokens of a text to which the changes of the first phase were already applied."""
        pieces: Iterator[str] = iter([text] if text else [])
        for step in self._steps:
            pieces = (
                map(step.apply_to_text, pieces) if isinstance(step, Normalizer) else _cut_each(pieces, *step)
            )
        if self._from_alphabet:
            return (to_bytes(piece) or b"" for piece in pieces)
        return (piece.encode() for piece in pieces)


def _cut_each(pieces: Iterator[str], cut: Cut, expression: Any) -> Iterator[str]:
    before = 0  # bytes; if gaps are errors, nothing was dropped
    for piece in pieces:
        try:
            yield from _cut(piece, cut, expression)
        except UncoveredText as error:
            raise error.moved(before) from None
        if cut.gaps_are_errors:
            before += len(piece.encode())


def _cut(text: str, cut: Cut, expression: Any) -> Iterator[str]:
    """Yield the pieces of a text: its matches and gaps, kept, dropped or merged by the behavior of the cut."""
    start = stop = 0  # of the next piece
    counted: bool | None = None  # whether its last segment matches; None after an empty match
    drops = False  # whether it is dropped
    for begin, end, in_match in parts_of(text, expression):
        if cut.gaps_are_errors and not in_match:
            raise UncoveredText(cut.name, text[begin : min(end, begin + 20)], len(text[:begin].encode()))
        if begin == end:
            counted = None
            continue
        counts = in_match != cut.invert
        joins = (
            (cut.behavior == "MergedWithPrevious" and counts and counted is False)
            or (cut.behavior == "MergedWithNext" and counted is True and not counts)
            or (cut.behavior == "Contiguous" and counts is counted)
        )
        if not joins:
            if stop > start and not drops:
                yield text[start:stop]
            start = begin
        stop, counted, drops = end, counts, cut.behavior == "Removed" and counts
    if stop > start and not drops:
        yield text[start:stop]
