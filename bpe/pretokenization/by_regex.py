"""Cutting by the `regex` package, for the patterns that no table can tell.

They are given to it with their classes written out, so that its Unicode version is of no consequence. One that
backtracks without end is stopped after `TIMEOUT_SECONDS` for one text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from bpe.errors import BadTokenizer, UncoveredText, UnsupportedPattern
from bpe.pretokenization.components import ByteLevel, Component, Digits, Split
from bpe.pretokenization.stages import BYTE_LEVEL, tree_of
from bpe.pretokenization.syntax import (
    Atomic,
    Characters,
    Choice,
    Look,
    Node,
    Repeat,
    TextEnd,
    TextStart,
)
from bpe.pretokenization.syntax import Sequence as Concatenation

TIMEOUT_SECONDS: Final = 60  # 1 MB of text takes 0.1 to 1 s; what takes 60 s backtracks
_MODES: Final = {"greedy": "", "lazy": "?", "possessive": "+"}


class RegexCutter:
    """Cuts texts by the components. why: what keeps them from being compiled, for what can't be done here, either."""

    def __init__(self, components: Sequence[Component], why: str) -> None:
        import regex  # slow to import, and hardly ever needed

        self._splits = [
            split
            for component in components
            if not (isinstance(component, ByteLevel) and not component.use_regex)
            for split in [_as_split(component, why)]
        ]
        self._expressions = [regex.compile(expression_of(tree_of(split))) for split in self._splits]

    def cut(self, text: str) -> Iterator[str]:
        """The pretokens of a text, one by one."""
        pieces: Iterator[str] = iter([text] if text else [])
        for split, expression in zip(self._splits, self._expressions, strict=True):
            pieces = _cut_each(pieces, split, expression)
        return pieces


def expression_of(tree: Node) -> str:
    """The tree in the dialect of the `regex` package."""
    match tree:
        case Characters(points):
            spans = "".join(f"\\U{start:08x}-\\U{stop - 1:08x}" for start, stop in points.ranges)
            return f"[{spans}]" if spans else "(?!)"
        case Concatenation(parts):
            return "".join(map(expression_of, parts))
        case Choice(options):
            return f"(?:{'|'.join(map(expression_of, options))})" if options else "(?!)"
        case Repeat(body, least, most, mode):
            return f"(?:{expression_of(body)}){{{least},{'' if most is None else most}}}{_MODES[mode]}"
        case Atomic(body):
            return f"(?>{expression_of(body)})"
        case Look(body, behind, negated):
            return f"(?{'<' * behind}{'!' if negated else '='}{expression_of(body)})"
        case TextStart():
            return r"\A"
        case TextEnd():
            return r"\Z"


def _as_split(component: Component, why: str) -> Split:
    match component:
        case Split(_, _, "Isolated", False) | Split(_, _, "Removed", True):
            return component
        case ByteLevel():
            return Split(BYTE_LEVEL, "rust")
        case Digits():
            return Split(r"\p{N}" if component.individual_digits else r"\p{N}+", "rust")
    raise UnsupportedPattern(why)


def _cut_each(pieces: Iterator[str], split: Split, expression: Any) -> Iterator[str]:
    before = 0  # bytes; where gaps are errors nothing was dropped
    for piece in pieces:
        try:
            yield from _cut(piece, split, expression)
        except UncoveredText as error:
            raise error.moved(before) from None
        before += len(piece.encode())


def _cut(text: str, split: Split, expression: Any) -> Iterator[str]:
    """The matches in `text` and what lies between them, if that is not dropped; an empty match only separates.

    Behind an empty match the search goes on a character further, as in the engines of the dialects, where no other
    alternative is tried: "12ab", [0-9]*|[a-z]+ -> "12", "a", "b".
    """
    start = place = 0
    keeps = split.behavior == "Isolated"
    try:
        while place <= len(text):
            matches = expression.finditer(text, place, timeout=TIMEOUT_SECONDS)
            place = len(text) + 1
            for match in matches:
                first = match.start()
                if first > start and keeps:
                    yield _between(text, start, first, split)
                start = match.end()
                if start == first:
                    place = start + 1
                    break
                yield match.group()
    except TimeoutError:
        raise BadTokenizer(
            f"pattern {split.expression[:100]!r} took over {TIMEOUT_SECONDS} s on a text of {len(text)} characters: it "
            "backtracks; write it so that less hangs on what is far to the right"
        ) from None
    if start < len(text) and keeps:
        yield _between(text, start, len(text), split)


def _between(text: str, start: int, stop: int, split: Split) -> str:
    if split.gaps_are_errors:
        left_out = text[start : min(stop, start + 20)]
        raise UncoveredText(split.expression, left_out, len(text[:start].encode()))
    return text[start:stop]
