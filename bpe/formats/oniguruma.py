"""Expressions between the `regex` package, which runs them here, and Oniguruma, which Hugging Face's readers use.

Most means the same in both. What differs is rewritten so that it cuts alike, or refused by name:

| in the expression | regex            | Oniguruma (Ruby's syntax)   |
|-------------------|------------------|-----------------------------|
| `$`               | end, or before a last newline | end of any line |
| `^`               | start            | start of any line           |
| `\\Z`              | end              | end, or before a last newline |
| `\\w`              | without ²³¹¼½¾, with U+200C and U+200D | the other way round |
| `\\pL`             | `\\p{L}`         | the letters pL; refused where they mean that |
| `(?i)` not in front | all of the expression | what follows: refused |
| `\\p{...}`, `\\w` under `(?i)` | of any case | of all that folds alike, marks too: refused |
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
_PROPERTIES: Final = (r"\p", r"\P", r"\w", r"\W")
_PROPERTY: Final = re.compile(r"\\[pP](\{[^{}]*\}|.)", re.DOTALL)


def to_oniguruma(expression: str) -> str:
    """The expression for Hugging Face's readers; UnsupportedTokenizer names what can't be said there."""
    return _translate(expression, _TO_ONIGURUMA)


def from_oniguruma(expression: str) -> str:
    """The expression for the `regex` package; UnsupportedTokenizer names what can't be said there."""
    return _translate(expression, _FROM_ONIGURUMA)


def _translate(expression: str, replacements: Mapping[str, str]) -> str:
    out: list[str] = []
    in_class = False
    any_case = [False]  # of the whole, and of each group that is open
    for place, item in _items(expression):
        if item in _REFUSED_ESCAPES:
            raise _refused(expression, item)
        if any_case[-1] and item[:2] in _PROPERTIES:
            raise _refused(expression, f"{item} under (?i)", "put (?i:...) around what needs it alone")
        if _PROPERTY.fullmatch(item) and len(item) == 3:
            braced = f"{item[:2]}{{{item[2]}}}"
            if replacements is _FROM_ONIGURUMA:
                raise _refused(expression, item, f"write {braced}")
            item = braced
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
        elif item == "(":
            any_case.append(_is_of_any_case(expression, place, any_case))
        elif item == ")" and len(any_case) > 1:
            any_case.pop()
        elif item == "{" and POSSESSIVE_INTERVAL.match(expression, place):
            raise _refused(expression, "{n,m}+", "write it as an atomic group, (?>...{n,m})")
        out.append(replacements.get(item, item))
    return "".join(out)


def _is_of_any_case(expression: str, place: int, any_case: list[bool]) -> bool:
    """Whether case counts for nothing in the group that opens at `place`; `(?i)` in front sets it for the whole."""
    start = expression[place : place + 4]
    if start == "(?i)" and place == 0:
        any_case[0] = True
    elif start == "(?i)" or (start[1:2] == "?" and not expression.startswith(_PLAIN_GROUPS, place)):
        raise _refused(expression, start)
    if expression.startswith("(?-i:", place):
        return False
    return start == "(?i:" or any_case[-1]


def _items(expression: str) -> Iterator[tuple[int, str]]:
    """(place, character, escape or property) of the expression: "a\\\\d\\\\p{L}" gives "a", "\\\\d", "\\\\p{L}"."""
    place = 0
    while place < len(expression):
        length = 2 if expression[place] == "\\" and place + 1 < len(expression) else 1
        if property_ := _PROPERTY.match(expression, place):
            length = property_.end() - place
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
