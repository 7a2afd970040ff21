"""Expressions between the `regex` package, which runs them here, and Oniguruma, which Hugging Face's readers use.

Most means the same in both. What differs is rewritten so that it cuts alike, or refused by name:

| in the expression | regex            | Oniguruma (Ruby's syntax)   |
|-------------------|------------------|-----------------------------|
| `$`               | end, or before a last newline | end of any line |
| `^`               | start            | start of any line           |
| `\\Z`              | end              | end, or before a last newline |
| `\\w`              | without ²³¹¼½¾, with U+200C and U+200D | the other way round |
| `\\b`, `\\h`, `(?m)`, `{1,3}+`, `[a[b]]`, `&&` | each means something else, or nothing: refused |

Checked against `tokenizers` in tests/bpe/test_oniguruma.py, `\\w` over all of Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from bpe.errors import UnsupportedTokenizer, shown

POSSESSIVE_INTERVAL: Final = re.compile(r"\{\d*,?\d*\}\+")

_ONLY_OUTSIDE_CLASSES: Final = "²³¹¼½¾"  # Oniguruma's \w matches them, its [\w] does not

# What Oniguruma is to see for what `regex` means by it.
_TO_ONIGURUMA: Final = {
    "$": r"(?=\n?\z)",
    "^": r"\A",
    r"\Z": r"\z",
    r"\w": r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200C\u200D]",
    r"\W": r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200C\u200D]",
}
# What `regex` is to see for what Oniguruma means by it.
_FROM_ONIGURUMA: Final = {
    "$": r"(?=\n|\Z)",
    "^": r"(?<=\A|\n)",
    r"\Z": r"(?=\n?\Z)",
    r"\z": r"\Z",
    r"\w": r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}" + _ONLY_OUTSIDE_CLASSES + "]",
    r"\W": r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}" + _ONLY_OUTSIDE_CLASSES + "]",
}
_REFUSED_ESCAPES: Final = {
    r"\b",
    r"\B",
    r"\h",
    r"\H",
    r"\R",
    r"\X",
    r"\K",
    r"\G",
    r"\g",
    r"\k",
    r"\y",
    r"\Y",
    r"\m",
    r"\M",
    r"\O",
    r"\N",
    r"\L",
}
_PLAIN_GROUPS: Final = ("(?:", "(?i:", "(?i)", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?-i:")


def to_oniguruma(expression: str) -> str:
    """The expression for Hugging Face's readers; UnsupportedTokenizer names what can't be said there."""
    return _translate(expression, _TO_ONIGURUMA)


def from_oniguruma(expression: str) -> str:
    """The expression for the `regex` package; UnsupportedTokenizer names what can't be said there."""
    return _translate(expression, _FROM_ONIGURUMA)


def _translate(expression: str, replacements: Mapping[str, str]) -> str:
    out: list[str] = []
    in_class = False
    for place, item in _items(expression):
        if item in _REFUSED_ESCAPES:
            raise _refused(expression, item)
        if in_class:
            if item == "[" or expression.startswith(("&&", "--", "||", "~~"), place):
                raise _refused(expression, expression[place : place + 2])
            if item == "]" and not _first_in_class(expression, place):
                in_class = False
            elif item == r"\w":
                item = replacements[item][1:-1].removesuffix(_ONLY_OUTSIDE_CLASSES)
            elif item in (r"\W", r"\Z", r"\z", r"\A"):
                raise _refused(expression, f"[{item}]")
            out.append(item)
            continue
        if item == "[":
            in_class = True
        elif (
            item == "("
            and expression.startswith("(?", place)
            and not expression.startswith(_PLAIN_GROUPS, place)
        ):
            raise _refused(expression, expression[place : place + 4])
        elif item == "{" and POSSESSIVE_INTERVAL.match(expression, place):
            raise _refused(expression, "{n,m}+", "write it as an atomic group, (?>...{n,m})")
        out.append(replacements.get(item, item))
    return "".join(out)


def _items(expression: str) -> Iterator[tuple[int, str]]:
    """(place, character or escape) of the expression; "\\\\p{L}" gives the escape "\\\\p" and then "{", "L", "}"."""
    place = 0
    while place < len(expression):
        length = 2 if expression[place] == "\\" and place + 1 < len(expression) else 1
        yield place, expression[place : place + length]
        place += length


def _first_in_class(expression: str, place: int) -> bool:
    """Whether the bracket at `place` opens a class's list, as in `[]a]` and `[^]a]`, where it stands for itself."""
    before = expression[:place]
    return before.endswith("[") or before.endswith("[^")


def _refused(
    expression: str, what: str, way_out: str = "use one of the named patterns or write it otherwise"
) -> UnsupportedTokenizer:
    return UnsupportedTokenizer(
        f"pattern {shown(expression, 80)}: {what} does not mean the same to Hugging Face's readers and here; {way_out}"
    )
