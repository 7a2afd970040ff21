r"""Write a pattern for tokenizers, which reads Oniguruma expressions.

Most expressions mean the same in both dialects and are kept. Others are written from their syntax tree. Sets keep their
spelling if it means the same, and are written as ranges otherwise; letter case and anchors as sets and lookarounds.
"""

from __future__ import annotations

from typing import Final

from bpe.errors import BadTokenizer, UnsupportedPattern
from bpe.pretokenization import read_oniguruma, read_rust
from bpe.pretokenization.code_points import CodePoints
from bpe.pretokenization.pattern_reader import LOOKS, is_anchor
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

_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")
_SPECIAL_IN_CLASS: Final = frozenset("\\[]^-&~")

_NEVER: Final = r"[^\s\S]"
# Rust's \w and \W.
_WORDS: Final = tuple(
    rf"[{sign}\p{{Alphabetic}}\p{{M}}\p{{Nd}}\p{{Pc}}\x{{200C}}\x{{200D}}]" for sign in ("", "^")
)


def to_oniguruma(expression: str) -> str:
    """Return an expression for tokenizers that matches like `expression` of the Rust dialect."""
    reader = read_rust.RustReader(expression)
    tree = reader.read()
    if _read(expression) == tree:
        return expression
    nodes = ((text, _read(text)) for text in (*_WORDS, *reader.sets))
    return _Writer({node.points: text for text, node in nodes if isinstance(node, Characters)}).written(tree)


def _read(expression: str) -> Node | None:
    """Return the tree of an Oniguruma expression, None if it cannot be read."""
    try:
        return read_oniguruma.read(expression)
    except (BadTokenizer, UnsupportedPattern):
        return None


class _Writer:
    """spellings: how to write some sets."""

    def __init__(self, spellings: dict[CodePoints, str]) -> None:
        self._spellings = spellings

    def written(self, node: Node) -> str:
        if isinstance(node, Choice):
            return "|".join(map(self._item, node.options)) or _NEVER
        return self._item(node)

    def _item(self, node: Node) -> str:
        """Return an expression that can be part of a sequence."""
        match node:
            case Characters(points):
                return self._spellings.get(points) or _set(points)
            case Sequence(parts):
                return "".join(map(self._item, parts))
            case Choice():
                return f"(?:{self.written(node)})"
            case Repeat():
                return self._repeat(node)
            case Atomic(body):
                return f"(?>{self.written(body)})"
            case Look(body, behind, negated):
                opening = next(text for text, kind in LOOKS.items() if kind == (behind, negated))
                return f"({opening}{self.written(body)})"
            case TextStart():
                return r"\A"
            case TextEnd():
                return r"\z"

    def _repeat(self, node: Repeat) -> str:
        if not _consumes(node.body):  # Oniguruma cannot repeat a condition, and repeating one changes nothing
            return self._item(node.body) if node.least else ""
        bounds = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((node.least, node.most))
        is_interval = bounds is None
        if bounds is None:
            most = "" if node.most is None else node.most
            bounds = f"{{{node.least}}}" if node.least == node.most else f"{{{node.least},{most}}}"
        if isinstance(node.body, Characters | Atomic):
            body = self._item(node.body)
        else:  # Oniguruma repeats alternatives with a condition only in a group with flags
            flags = "-i" if is_anchor(node.body) else ""
            body = f"(?{flags}:{self.written(node.body)})"
        if node.mode == "possessive":
            return f"(?>{body}{bounds})" if is_interval else f"{body}{bounds}+"
        return f"{body}{bounds}?" if node.mode == "lazy" and node.least != node.most else body + bounds


def _consumes(node: Node) -> bool:
    """Return whether some match contains a character."""
    match node:
        case Characters(points):
            return bool(points)
        case Sequence(parts) | Choice(parts):
            return any(map(_consumes, parts))
        case Repeat(body) | Atomic(body):
            return _consumes(body)
    return False


def _set(points: CodePoints) -> str:
    if not points:
        return _NEVER
    if len(points) == 1:
        return _character(points.ranges[0][0])
    listed = "".join(map(_range, points.ranges))
    return min(f"[{listed}]", f"[^{''.join(map(_range, (~points).ranges))}]", key=len)


def _range(span: tuple[int, int]) -> str:
    start, stop = span
    between = "" if stop - start == 2 else "-"
    last = between + _character(stop - 1, _SPECIAL_IN_CLASS) if stop - start > 1 else ""
    return _character(start, _SPECIAL_IN_CLASS) + last


def _character(point: int, special: frozenset[str] = _SPECIAL) -> str:
    character = chr(point)
    if character in special:
        return "\\" + character
    escaped = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}.get(character)
    return escaped or (character if 0x20 <= point < 0x7F else f"\\x{{{point:X}}}")
