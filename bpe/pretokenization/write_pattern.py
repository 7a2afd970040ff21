r"""Write a pattern for tokenizers, which reads Oniguruma expressions.

Most expressions mean the same in both dialects and are kept. Others are written from their syntax tree: sets as a
property, or as general categories and ranges, or as `[^...]` if that is shorter; letter case and anchors as sets and
lookarounds.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from bpe.errors import BadTokenizer, UnsupportedPattern
from bpe.pretokenization import read_oniguruma, read_rust
from bpe.pretokenization.code_points import CodePoints
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
from bpe.pretokenization.unicode_tables import name_of, required

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
_NEVER: Final = r"[^\s\S]"


def to_oniguruma(expression: str) -> str:
    """Return an expression for tokenizers that matches like `expression` of the Rust dialect."""
    tree = read_rust.read(expression)
    try:
        if read_oniguruma.read(expression) == tree:
            return expression
    except (BadTokenizer, UnsupportedPattern):
        pass
    return written(tree)


def written(node: Node) -> str:
    """Return the tree as an Oniguruma expression."""
    if isinstance(node, Choice):
        return "|".join(map(_item, node.options)) or _NEVER
    return _item(node)


def _item(node: Node) -> str:
    """Return an expression that can be part of a sequence."""
    match node:
        case Characters(points):
            return _set(points)
        case Sequence(parts):
            return "".join(map(_item, parts))
        case Choice():
            return f"(?:{written(node)})"
        case Repeat():
            return _repeat(node)
        case Atomic(body):
            return f"(?>{written(body)})"
        case Look(body, behind, negated):
            return f"{_LOOKS[behind, negated]}{written(body)})"
        case TextStart():
            return r"\A"
        case TextEnd():
            return r"\z"


def _repeat(node: Repeat) -> str:
    if not _consumes(node.body):  # Oniguruma cannot repeat a condition, and repeating one changes nothing
        return _item(node.body) if node.least else ""
    bounds = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((node.least, node.most))
    is_interval = bounds is None
    if bounds is None:
        most = "" if node.most is None else node.most
        bounds = f"{{{node.least}}}" if node.least == node.most else f"{{{node.least},{most}}}"
    if isinstance(node.body, Characters | Atomic):
        body = _item(node.body)
    else:  # Oniguruma repeats alternatives with a condition only in a group with flags
        flags = "-i" if read_oniguruma.is_anchor(node.body) else ""
        body = f"(?{flags}:{written(node.body)})"
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
    if points == ~CodePoints():
        return r"[\s\S]"
    opposite = ~points
    for each, letter, shorthand in ((points, "p", str.lower), (opposite, "P", str.upper)):
        if name := name_of("oniguruma", each):
            return shorthand(name) if name[0] == "\\" else f"\\{letter}{{{name.capitalize()}}}"
    return min(f"[{_listed(points)}]", f"[^{_listed(opposite)}]", key=len)


def _listed(points: CodePoints) -> str:
    """Return the content of the class: whole categories, then ranges."""
    names: list[str] = []
    rest = points
    blanks = required("oniguruma", "\\s")
    if not blanks - points:
        names.append("\\s")
        rest -= blanks
    for group, categories in _CATEGORIES.items():
        whole = [each for each in categories if not _category(each) - points and _category(each) & rest]
        is_group = all(not _category(each) - points for each in categories)
        names += [rf"\p{{{name}}}" for name in ([group] if whole and is_group else whole)]
        rest -= CodePoints.union(map(_category, whole))
    return min("".join([*names, *map(_range, rest.ranges)]), "".join(map(_range, points.ranges)), key=len)


@cache
def _category(name: str) -> CodePoints:
    return required("rust", name.lower())


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
