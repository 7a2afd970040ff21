"""How a text without special tokens falls into pretokens: a named pattern of the core, or expressions for `regex`.

A `Pretokenizer` is a list of stages, each cutting the pieces of the one before at the matches of its expression. What
lies between the matches is an error, since text would be lost, unless a tokenizer file says what becomes of it: it is a
pretoken of its own (Hugging Face's `Isolated`) or is dropped (`Removed`). One stage with a named pattern runs in the
core, where nothing lies between matches; all else runs here, at some 10 MB/s. There, an expression means what the
`regex` package says it means (`$` also matches before a last newline), but for the classes within classes and `&&` of
the dialects that patterns are published in (`bpe.pattern_dialect`).

An expression that backtracks without end, such as `(a+)+$`, is stopped after `TIMEOUT_SECONDS` for one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadArgument, BadTokenizer, UncoveredText, shown
from bpe.pattern_dialect import in_common_dialect
from bpe.pattern_size import check_size
from bpe.patterns import PATTERNS, pattern_name

Unmatched = Literal["error", "keep", "drop"]

_BARE_WORD: Final = re.compile(r"[A-Za-z][\w.-]+")  # a mistyped name, such as gpt3
TIMEOUT_SECONDS: Final = 60  # 1 MB of text takes 0.1 to 1 s; what takes 60 s backtracks


class Stage(NamedTuple):
    """expression: a name of PATTERNS or an expression. unmatched: what becomes of text between the matches."""

    expression: str
    unmatched: Unmatched = "error"


@dataclass(frozen=True)
class Pretokenizer:
    """The stages in their order; equal ones cut alike."""

    stages: tuple[Stage, ...]

    @staticmethod
    def from_pattern(pattern: str | Pretokenizer) -> Pretokenizer:
        """One stage; an expression that is a known spelling of a named pattern becomes that name.

        BadTokenizer if the expression does not compile or means one thing here and another in the dialects.
        """
        if isinstance(pattern, Pretokenizer):
            return pattern
        if not isinstance(pattern, str) or not pattern:
            raise BadArgument(
                f"pattern must be one of {', '.join(PATTERNS)} or an expression, got {shown(pattern)}"
            )
        try:
            pattern.encode()
        except UnicodeEncodeError:
            raise BadArgument(f"pattern {shown(pattern)} holds a lone surrogate, which UTF-8 can't") from None
        name = pattern_name(pattern)
        if not name and _BARE_WORD.fullmatch(pattern):
            raise BadArgument(
                f"pattern {shown(pattern)} is none of {', '.join(PATTERNS)}; as an expression it would match "
                "that word alone, and all other text would be lost"
            )
        if name:
            return Pretokenizer((Stage(name),))
        pretokenizer = Pretokenizer((Stage(in_common_dialect(pattern)),))
        _ = pretokenizer.compiled
        return pretokenizer

    @property
    def core_pattern(self) -> str | None:
        """The name of the pattern if the core can do it, else None."""
        if len(self.stages) == 1 and self.stages[0].expression in PATTERNS:
            return self.stages[0].expression
        return None

    @property
    def description(self) -> str:
        """The name, or the expressions joined by " then "."""
        return " then ".join(stage.expression for stage in self.stages)

    @cached_property
    def compiled(self) -> list[tuple[Any, Unmatched]]:
        """(compiled expression, what becomes of unmatched text) of each stage."""
        check_size(PATTERNS.get(stage.expression, stage.expression) for stage in self.stages)
        return [
            (compile_expression(PATTERNS.get(stage.expression, stage.expression)), stage.unmatched)
            for stage in self.stages
        ]

    def pretokens(self, text: str) -> list[str]:
        """The pretokens of a text without special tokens, in order; none is empty.

        Pretokenizer.from_pattern("[a-z]+| ").pretokens("ab cd") -> ["ab", " ", "cd"]. UncoveredText where the pattern
        leaves text out.
        """
        return list(self.iterate(text))

    def iterate(self, text: str) -> Iterator[str]:
        """The same, one by one, for texts whose pretokens are too many to be held."""
        pieces: Iterator[str] = iter([text] if text else [])
        for expression, unmatched in self.compiled:
            pieces = _cut_each(text, pieces, expression, unmatched)
        return pieces

    def pretoken_spans(self, text: str) -> tuple[bytes, NDArray[np.uint64]]:
        """(the pretokens' UTF-8 end to end, uint64 ends of each), as the core's calls for given pretokens take them."""
        pretokens = [pretoken.encode() for pretoken in self.pretokens(text)]
        ends = np.cumsum([len(pretoken) for pretoken in pretokens], dtype=np.uint64)
        return b"".join(pretokens), ends


def compile_expression(expression: str) -> Any:
    """The compiled expression, or BadTokenizer with what the `regex` package says is wrong and where."""
    import regex  # 10 ms to import, and not needed for the named patterns

    try:
        return regex.compile(expression)
    except RecursionError:
        raise BadTokenizer(f"pattern {shown(expression, 100)} nests groups too deeply") from None
    except regex.error as error:
        raise BadTokenizer(f"pattern {shown(expression, 100)} is no valid expression: {error}") from None


def _cut_each(text: str, pieces: Iterator[str], expression: Any, unmatched: Unmatched) -> Iterator[str]:
    """What each piece is cut into. text: what the pieces come from, whole unless a stage before dropped some."""
    before = 0  # characters
    for piece in pieces:
        try:
            yield from cut(piece, expression, unmatched)
        except UncoveredText as error:
            raise error.moved(len(text[:before].encode())) from None
        before += len(piece)


def cut(text: str, expression: Any, unmatched: Unmatched) -> Iterator[str]:
    """The matches in `text` and, with "keep", what lies between them; an empty match only separates.

    Behind an empty match the search goes on a character further, as in Hugging Face's readers, where no other
    alternative is tried: "12ab", [0-9]*|[a-z]+ -> "12", "a", "b" with "keep". UncoveredText with "error".
    """
    start = 0
    place = 0
    try:
        while place <= len(text):
            matches = expression.finditer(text, place, timeout=TIMEOUT_SECONDS)
            place = len(text) + 1
            for match in matches:
                first = match.start()
                if first > start and unmatched != "drop":
                    yield _between(text, start, first, expression, unmatched)
                start = match.end()
                if start == first:
                    place = start + 1
                    break
                yield match.group()
    except TimeoutError:
        raise BadTokenizer(
            f"pattern {shown(expression.pattern, 100)} took over {TIMEOUT_SECONDS} s on a text of {len(text)} "
            "characters: it backtracks; use possessive quantifiers or a named pattern"
        ) from None
    if start < len(text) and unmatched != "drop":
        yield _between(text, start, len(text), expression, unmatched)


def _between(text: str, start: int, stop: int, expression: Any, unmatched: Unmatched) -> str:
    if unmatched == "error":
        left_out = text[start : min(stop, start + 20)]
        raise UncoveredText(expression.pattern, left_out, len(text[:start].encode()))
    return text[start:stop]
