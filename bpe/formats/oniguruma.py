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
| `i` under `(?i)`  | `[iIİ]`, `I` is `[iIı]` | `[iI]`; in a class refused |
| `ss`, `ß` under `(?i)` | one is not the other | each is the other: refused, as all such |
| `[a[b]]`, `&&`    | single characters | a class in a class, an intersection |
| `\\b`, `\\h`, `(?m)`, `{1,3}+` | each means something else, or nothing: refused |

Checked against `tokenizers` in tests/bpe/test_oniguruma.py, `\\w` over all of Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from bpe.errors import UnsupportedTokenizer, shown
from bpe.pattern_dialect import in_common_dialect

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
# By whether it comes from Oniguruma: to `regex` the two i of Turkish are these letters too.
_LETTER_I: Final = {
    True: {"i": "(?-i:[iI])", "I": "(?-i:[iI])"},
    False: {"i": "(?-i:[iI\u0130])", "I": "(?-i:[iI\u0131])"},
}
_PROPERTIES: Final = (r"\p", r"\P", r"\w", r"\W")
_PROPERTY: Final = re.compile(r"\\[pP](\{[^{}]*\}|.)", re.DOTALL)


def to_oniguruma(expression: str) -> str:
    """The expression for Hugging Face's readers; UnsupportedTokenizer names what can't be said there."""
    return _translate(expression, _TO_ONIGURUMA)


def from_oniguruma(expression: str) -> str:
    """The expression for the `regex` package; UnsupportedTokenizer names what can't be said there."""
    return _translate(in_common_dialect(expression), _FROM_ONIGURUMA)


def _translate(expression: str, replacements: Mapping[str, str]) -> str:
    out: list[str] = []
    in_class = False
    last = ""  # what stood before, in a class
    any_case = [False]  # of the whole, and of each group that is open
    for place, item in _items(expression):
        if item in _REFUSED_ESCAPES:
            raise _refused(expression, item)
        if any_case[-1]:
            if item[:2] in _PROPERTIES:
                raise _refused(expression, f"{item} under (?i)", "put (?i:...) around what needs it alone")
            _check_folds_alike(expression, place, item, in_class)
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
            elif item == "-" and last == r"\w":
                item = r"\-"  # behind the characters that stand for \w it would make a range
            out.append(item)
            last = expression[place : place + 2]
            continue
        if item == "[":
            in_class, last = True, ""
        elif item == "(":
            any_case.append(_is_of_any_case(expression, place, any_case))
        elif item == ")" and len(any_case) > 1:
            any_case.pop()
        elif item == "{" and POSSESSIVE_INTERVAL.match(expression, place):
            raise _refused(expression, "{n,m}+", "write it as an atomic group, (?>...{n,m})")
        elif any_case[-1] and item in ("i", "I") and not expression[:place].endswith(("(?", "(?-")):
            item = _LETTER_I[replacements is _FROM_ONIGURUMA][item]
        out.append(replacements.get(item, item))
    return "".join(out)


def _check_folds_alike(expression: str, place: int, item: str, in_class: bool) -> None:
    """Nothing, or UnsupportedTokenizer for letters under (?i) of which Oniguruma takes one for two: ß for ss."""
    what = letters = item
    if in_class and item == "-" and 0 < place < len(expression) - 1 and expression[place + 1] != "]":
        what = expression[place - 1 : place + 2]
        letters = "".join(map(chr, range(ord(what[0]), ord(what[2]) + 1)))
    pair = expression[place - 1 : place + 1] if place and not in_class else ""
    if pair.casefold() in _pairs_that_are_one():
        what = pair
    elif not (in_class and ("i" in letters or "I" in letters)) and not any(
        letter in "\u0130\u0131" or len(letter.casefold()) > 1 for letter in letters if letter > "\x7f"
    ):
        return
    raise _refused(expression, f"{what} under (?i)", "write the letters of both cases without it")


@cache
def _pairs_that_are_one() -> frozenset[str]:
    """The first two of the letters that a letter folds to, where these are several: ss of ß, ff and fi of ﬃ."""
    folded = [chr(point).casefold() for point in (*range(0x80, 0x2000), *range(0xFB00, 0xFB18))]
    return frozenset(letters[:2] for letters in folded if len(letters) > 1)


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
