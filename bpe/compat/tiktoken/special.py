"""Special tokens in texts where they are disallowed."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn


@lru_cache(maxsize=128)
def finder_of(tokens: frozenset[str]) -> tuple[str, re.Pattern[str]]:
    """(what all tokens begin with, an expression for any of them)."""
    low, high = min(tokens), max(tokens)
    same = next((place for place, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:same], re.compile("|".join(map(re.escape, tokens)))


def raise_disallowed_special_token(token: str) -> NoReturn:
    """ValueError for a disallowed special token in a text."""
    raise ValueError(
        f"text: contains the disallowed special token {token!r}. Add it to allowed_special to "
        "encode it as its ID, or pass disallowed_special=() to encode it as text."
    )
