"""Find the matches of a syntax tree with the `regex` package, like the engines of the dialects.

Classes are written as code points, so the Unicode version of the package does not matter. A timeout stops patterns that
backtrack exponentially.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bpe.errors import BadTokenizer
from bpe.pretokenization.syntax import (
    Atomic,
    Characters,
    Choice,
    Look,
    Node,
    Repeat,
    Sequence,
    TextEnd,
    TextStart,
)

# Per text and per character: over a hundred times the duration of a pattern with linear running time.
TIMEOUT_SECONDS: Final = 60
TIMEOUT_SECONDS_EACH: Final = 1e-4
_MODES: Final = {"greedy": "", "lazy": "?", "possessive": "+"}


def expression_of(tree: Node) -> str:
    """Return the tree as an expression of the `regex` package."""
    match tree:
        case Characters(points):
            spans = "".join(f"\\U{start:08x}-\\U{stop - 1:08x}" for start, stop in points.ranges)
            return f"[{spans}]" if spans else "(?!)"
        case Sequence(parts):
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


def parts_of(text: str, expression: Any) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, stop, whether it is a match) of the matches and of the non-empty gaps between them.

    After an empty match the search resumes one character later, without trying other alternatives, like the engines of
    the dialects: "12ab", [0-9]*|[a-z]+ -> "12", "a", "b".
    """
    start = place = 0
    last = -1  # end of the previous match
    timeout = TIMEOUT_SECONDS + TIMEOUT_SECONDS_EACH * len(text)
    try:
        while place <= len(text):
            matches = expression.finditer(text, place, timeout=timeout)
            place = len(text) + 1
            for match in matches:
                first = match.start()
                if first > start:
                    yield start, first, False
                start = match.end()
                if start > first or start != last:  # an empty match directly after a match does not count
                    yield first, start, True
                last = start
                if start == first:
                    place = start + 1
                    break
    except TimeoutError:
        raise BadTokenizer(
            f"pattern: took over {timeout:.0f} s on a text of {len(text)} characters because it backtracks. "
            "Simplify its repeats and lookarounds."
        ) from None
    if start < len(text):
        yield start, len(text), False
