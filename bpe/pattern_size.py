"""How large an expression is once its repeats are written out, which is what compiling it costs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from bpe.errors import BadTokenizer, shown

# Some 300 bytes each in the compiled form. The longest pattern of a known tokenizer comes to less than 1,000.
MAX_ITEMS: Final = 100_000
_STAGE_ITEMS: Final = 100  # what a compiled expression takes beside its items

_ITEM: Final = re.compile(r"\\[pPN]\{[^{}]*\}|\\.|\{(\d*)(?:,(\d*))?\}|.", re.DOTALL)


def check_size(expressions: Iterable[str]) -> None:
    """Nothing, or BadTokenizer for expressions of more than MAX_ITEMS items together with their repeats written out."""
    total = 0
    for expression in expressions:
        total += _STAGE_ITEMS + (
            len(expression) if len(expression) > MAX_ITEMS else expanded_items(expression)
        )
        if total > MAX_ITEMS:
            raise BadTokenizer(
                f"pattern {shown(expression, 80)} comes to more than {MAX_ITEMS:,} items with its repeats written out "
                "and the stages before it; use smaller repeats or fewer stages"
            )


def expanded_items(expression: str) -> int:
    """How many characters, escapes and groups the expression has with `{n,m}` written out: "(ab{3}){2}" -> 10.

    A class counts as what is in it. Beyond MAX_ITEMS counting ends.
    """
    outer: list[int] = []  # the totals of the groups that are open
    total = last = 0  # of the group; of its last item
    class_start = -1  # place behind the bracket that opened the class; -1: in none
    for found in _ITEM.finditer(expression):
        item = found.group()
        if class_start >= 0:
            total += 1
            last += 1
            if item == "]" and expression[class_start : found.start()] not in ("", "^"):
                class_start = -1
        elif item == "[":
            total += 1
            last, class_start = 1, found.end()
        elif item == "(":
            outer.append(total)
            total = last = 0
        elif item == ")" and outer:
            last = total + 1
            total = outer.pop() + last
        elif found.lastindex:
            times = max(1, *(_number(digits) for digits in found.groups()))
            total += last * (times - 1)
            last *= times
        else:
            total += 1
            last = 1
        if total > MAX_ITEMS:
            break
    return total + sum(outer)


def _number(digits: str | None) -> int:
    """Its value, or MAX_ITEMS + 1 if it is more."""
    digits = (digits or "0").lstrip("0") or "0"
    return MAX_ITEMS + 1 if len(digits) > len(str(MAX_ITEMS)) else int(digits)
