r"""A syntax tree as an expression of a dialect, which reads as the same tree or one that matches alike.

A set is a property where one equals it; else whole general categories and what is left as ranges, or the opposite in
`[^...]` where that is shorter. Letter case, anchors of lines and word boundaries are written as the sets and looks that
they are in the tree.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from bpe.pretokenization.code_points import CodePoints
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
from bpe.pretokenization.unicode_tables import Dialect, name_of, required

_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$")
_SPECIAL_IN_CLASS: Final = frozenset("\\[]^-&~")
_LOOKS: Final = {(False, False): "(?=", (False, True): "(?!", (True, False): "(?<=", (True, True): "(?<!"}
_CATEGORIES: Final = {
    "L": ("Lu", "Ll", "Lt", "Lm", "Lo"),
    "M": ("Mn", "Mc", "Me"),
    "N": ("Nd", "Nl", "No"),
    "P": ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
    "S": ("Sm", "Sc", "Sk", "So"),
    "Z": ("Zs", "Zl", "Zp"),
    "C": ("Cc", "Cf", "Co", "Cn"),
}
_NEVER: Final = "(?!)"


def to_oniguruma(node: Node) -> str:
    """The tree for tokenizers."""
    return _Writer("oniguruma").alternatives(node)


def to_rust(node: Node) -> str:
    """The tree for tiktoken."""
    return _Writer("rust").alternatives(node)


class _Writer:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def alternatives(self, node: Node) -> str:
        if isinstance(node, Choice):
            return "|".join(map(self._sequence, node.options)) if node.options else _NEVER
        return self._sequence(node)

    def _sequence(self, node: Node) -> str:
        if isinstance(node, Sequence):
            return "".join(map(self._item, node.parts))
        return self._item(node)

    def _item(self, node: Node) -> str:
        """An expression that others may stand beside."""
        match node:
            case Characters(points):
                return self._set(points)
            case Sequence():
                return self._sequence(node)
            case Choice():
                return f"(?:{self.alternatives(node)})" if node.options else _NEVER
            case Repeat():
                return self._repeat(node)
            case Atomic(body):
                return f"(?>{self.alternatives(body)})"
            case Look(body, behind, negated):
                return f"{_LOOKS[behind, negated]}{self.alternatives(body)})"
            case TextStart():
                return r"\A"
            case TextEnd():
                return r"\z"
            case Capture(number, body):
                return f"(?<g{number}>{self.alternatives(body)})"
            case Reference(number):
                return rf"\k<g{number}>"

    def _repeat(self, node: Repeat) -> str:
        bounds = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((node.least, node.most))
        if bounds is None:
            most = "" if node.most is None else node.most
            bounds = f"{{{node.least}}}" if node.least == node.most else f"{{{node.least},{most}}}"
        text = self._repeatable(node.body) + bounds
        if node.mode == "possessive":
            is_interval = self._dialect == "oniguruma" and bounds[0] == "{"
            return f"(?>{text})" if is_interval else text + "+"
        return text + "?" if node.mode == "lazy" and node.least != node.most else text

    def _repeatable(self, body: Node) -> str:
        """An expression that a repeat may follow; neither dialect repeats a bare look or anchor."""
        if isinstance(body, Characters):
            text = self._set(body.points)
            return f"({text})" if text == _NEVER else text
        if isinstance(body, Atomic | Capture | Reference):
            return self._item(body)
        return f"({self.alternatives(body)})" if _may_be_empty(body) else f"(?:{self.alternatives(body)})"

    def _set(self, points: CodePoints) -> str:
        if not points:
            return _NEVER
        if len(points) == 1:
            return _character(points.ranges[0][0])
        if points == ~CodePoints():
            return r"[\s\S]"
        opposite = ~points
        for each, letter, shorthand in ((points, "p", str.lower), (opposite, "P", str.upper)):
            if name := name_of(self._dialect, each):
                return shorthand(name) if name[0] == "\\" else f"\\{letter}{{{_shown(name)}}}"
        return min(f"[{self._listed(points)}]", f"[^{self._listed(opposite)}]", key=len)

    def _listed(self, points: CodePoints) -> str:
        """What stands in the class: whole categories, then ranges."""
        names: list[str] = []
        rest = points
        blanks = required(self._dialect, "\\s")
        if not blanks - points:
            names.append("\\s")
            rest -= blanks
        for group, categories in _CATEGORIES.items():
            whole = [each for each in categories if not _category(each) - points and _category(each) & rest]
            is_group = all(not _category(each) - points for each in categories)
            names += [rf"\p{{{name}}}" for name in ([group] if whole and is_group else whole)]
            rest -= CodePoints.union(map(_category, whole))
        return min("".join([*names, *map(_range, rest.ranges)]), "".join(map(_range, points.ranges)), key=len)


def _may_be_empty(node: Node) -> bool:
    """Whether it is a condition or nothing in some way, so that it has to be captured to be repeated."""
    match node:
        case Sequence(parts):
            return all(map(_may_be_empty, parts))
        case Choice(options):
            return any(map(_may_be_empty, options)) or not options
        case Characters(points):
            return not points  # written as a look
        case Look() | TextStart() | TextEnd():
            return True
    return False


@cache
def _category(name: str) -> CodePoints:
    return required("rust", name.lower())


def _shown(name: str) -> str:
    key, sign, value = name.rpartition("=")
    return key + sign + value.capitalize()


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
