"""A syntax tree as an expression of the `regex` package, with its classes written out."""

from __future__ import annotations

from typing import Final

from bpe.pretokenization.syntax import (
    Atomic,
    Capture,
    Characters,
    Choice,
    Look,
    Node,
    Reference,
    Repeat,
    Sequence,
    TextEnd,
    TextStart,
)

_MODES: Final = {"greedy": "", "lazy": "?", "possessive": "+"}


def expression_of(tree: Node) -> str:
    """The tree in the dialect of the `regex` package."""
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
        case Capture(number, body):
            return f"(?P<g{number}>{expression_of(body)})"
        case Reference(number):
            return f"(?P=g{number})"
