"""Expressions as the dialects of tokenizers' patterns mean them, where the `regex` package reads something else.

In Rust's dialect and Oniguruma's a class may hold others, `[a[bc]]`, and `&&` keeps what both of its sides match,
`[a-z&&[^c]]`. To the `regex` package these are single characters. They are rewritten into what all of them read alike;
a `[` in a class that is meant as a character must be written `\\[`.

Refused is what the dialects themselves read in different ways: `--`, `||` and `~~` in a class, `[:alpha:]`, and a `{`
that begins no repeat, which asks the `regex` package for approximate matches: `(?:abc){e}`.
"""

from __future__ import annotations

import re
from typing import Final

from bpe.errors import UnsupportedTokenizer, shown

ANY_CHARACTER: Final = r"[\s\S]"
# A backslash and what belongs to it: \n, \], \p{Han}.
ESCAPE: Final = re.compile(r"\\(?:[pPN]\{[^{}]*\}|.|$)", re.DOTALL)
_REPEAT: Final = re.compile(r"\{(?:\d+(?:,\d*)?|,\d+)\}")
_OPERATIONS: Final = ("--", "||", "~~")


def in_common_dialect(expression: str) -> str:
    """The expression for the `regex` package; UnsupportedTokenizer names what the dialects read in different ways.

    "[a[bc]]+" -> "(?:[a]|[bc])+"; "[a-z&&[^c]]" -> "(?:(?=[^c])[a-z])"; "[^[a]]" -> "(?:(?![a])[\\\\s\\\\S])"
    """
    parts: list[str] = []
    place = 0
    while place < len(expression):
        if expression[place] == "[":
            part, place = _Classes(expression).read(place)
        elif expression[place] == "{" and not _REPEAT.match(expression, place):
            raise _refused(expression, expression[place : place + 9], "write \\{ for the character")
        else:
            escape = ESCAPE.match(expression, place)
            stop = escape.end() if escape else place + 1
            part, place = expression[place:stop], stop
        parts.append(part)
    return "".join(parts)


class _Classes:
    def __init__(self, expression: str) -> None:
        self._expression = expression

    def read(self, start: int) -> tuple[str, int]:
        """(the class that opens at `start`, or what stands for it; the place behind it)."""
        text = self._expression
        place = start + 1
        negated = text.startswith("^", place)
        place += negated
        operands: list[list[str]] = [[]]  # what `&&` joins, each the classes of a union
        items = place  # where single characters, ranges and escapes begin that are not yet in a class
        first = place
        while True:
            if place >= len(text):
                raise _refused(
                    text, text[start : start + 20], "the class is not closed; write \\[ for a bracket in it"
                )
            if text[place] == "[":
                if text.startswith("[:", place):
                    raise _refused(text, text[place : place + 9], "write the characters or a \\p{...}")
                self._add_items(operands[-1], items, place)
                nested, place = self.read(place)
                operands[-1].append(nested)
                items = place
            elif text.startswith("&&", place):
                self._add_items(operands[-1], items, place)
                operands.append([])
                place = items = place + 2
            elif text.startswith(_OPERATIONS, place):
                raise _refused(
                    text, f"{text[place : place + 2]} in a class", "write it otherwise, or \\ before each"
                )
            elif text[place] == "]" and place > first:
                break
            else:
                escape = ESCAPE.match(text, place)
                place = escape.end() if escape else place + 1
        if operands == [[]] and items == first:
            return text[start : place + 1], place + 1
        self._add_items(operands[-1], items, place)
        if not all(operands):
            raise _refused(text, text[start : place + 1], "one side of && is empty")
        unions = [union[0] if len(union) == 1 else f"(?:{'|'.join(union)})" for union in operands]
        joined = "".join(f"(?={union})" for union in unions[1:]) + unions[0]
        if negated:
            return f"(?:(?!{joined}){ANY_CHARACTER})", place + 1
        return (joined if len(unions) == 1 else f"(?:{joined})"), place + 1

    def _add_items(self, union: list[str], start: int, stop: int) -> None:
        items = self._expression[start:stop]
        if items:
            union.append(f"[\\{items}]" if items[0] in "^]" else f"[{items}]")


def _refused(expression: str, what: str, way_out: str) -> UnsupportedTokenizer:
    return UnsupportedTokenizer(
        f"pattern {shown(expression, 80)}: {shown(what)} does not mean the same in all dialects; {way_out}"
    )
