"""Cutting by the `regex` package, for the patterns that can't be compiled.

There, an expression means what the `regex` package says it means (`$` also matches before a last newline), but for the
classes within classes and `&&` of the dialects that patterns are published in (`bpe.pattern_dialect`), and for what
Oniguruma reads otherwise (`bpe.formats.oniguruma`). One that backtracks without end, such as `(a+)+\\1`, is stopped
after `TIMEOUT_SECONDS` for one text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from bpe.errors import BadTokenizer, UncoveredText, UnsupportedPattern, shown
from bpe.pattern_dialect import in_common_dialect
from bpe.pattern_size import check_size
from bpe.pretokenization.components import ByteLevel, Component, Digits, Split
from bpe.pretokenization.stages import BYTE_LEVEL

Unmatched = Literal["error", "keep", "drop"]

TIMEOUT_SECONDS: Final = 60  # 1 MB of text takes 0.1 to 1 s; what takes 60 s backtracks


class RegexCutter:
    """Cuts texts by the components; why: what makes them uncompilable, for the error where `regex` can't, either."""

    def __init__(self, components: Sequence[Component], why: str) -> None:
        stages = [_stage(component, why) for component in components if not _is_plain(component)]
        check_size(expression for expression, _ in stages)
        self._stages = [(compile_expression(expression), unmatched) for expression, unmatched in stages]

    def cut(self, text: str) -> Iterator[str]:
        """The pretokens of a text, one by one."""
        pieces: Iterator[str] = iter([text] if text else [])
        for expression, unmatched in self._stages:
            pieces = _cut_each(text, pieces, expression, unmatched)
        return pieces


def _is_plain(component: Component) -> bool:
    return isinstance(component, ByteLevel) and not component.use_regex


def _stage(component: Component, why: str) -> tuple[str, Unmatched]:
    import regex

    from bpe.formats.oniguruma import from_oniguruma

    match component:
        case Split(expression, "text", "Isolated", False):
            return regex.escape(expression, special_only=True), "keep"
        case Split(expression, dialect, "Isolated", False) if (
            component.gaps_are_errors or dialect == "oniguruma"
        ):
            there = in_common_dialect(expression) if dialect == "rust" else from_oniguruma(expression)
            return there, "error" if component.gaps_are_errors else "keep"
        case Split(expression, "oniguruma", "Removed", True):
            return from_oniguruma(expression), "drop"
        case ByteLevel(False):
            return BYTE_LEVEL, "keep"
        case Digits(individual):
            return (r"\p{N}" if individual else r"\p{N}+"), "keep"
    raise UnsupportedPattern(why)


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
