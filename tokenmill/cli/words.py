"""Types of command-line arguments for argparse: sizes, numbers, NAME=VALUE, escaped text, paths."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Final, NoReturn

from tokenmill.errors import shown
from tokenmill.stores.url import is_url

_ESCAPE: Final = re.compile(r"(?s)\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[ntr0fv\\])|\\.?")
# A comma separates thousands only, since "1,5" is one and a half to many people.
_SIZE: Final = re.compile(
    r"((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)(?:\.[0-9]+)?)(?:e\+?([0-9]{1,2}))?(?:([kmgt])(i?))?b?",
    re.IGNORECASE,
)
_POWERS: Final = {"k": 1, "m": 2, "g": 3, "t": 4}
_MAX_SIZE: Final = 10**18  # larger than any machine, and below 2^63


def size(text: str, expected: str = "an integer such as 32000, 32k, 100MB or 1e9") -> int:
    """Parse a size: "32k" -> 32000, "64KiB" -> 65536, "1e9" -> 10**9, "1.5GB" -> 1_500_000_000.

    k, M, G and T are powers of 1000; Ki, Mi, Gi and Ti are powers of 1024. A B may follow. Case does not matter.
    """
    match = _SIZE.fullmatch(text.strip()) if len(text) <= 40 else None
    if match is not None:
        from decimal import Decimal  # slow to import, and rarely needed

        digits, exponent, unit, binary = match.groups()
        scale = (1024 if binary else 1000) ** _POWERS[unit.lower()] if unit else 1
        value = Decimal(re.sub("[_,]", "", digits)) * Decimal(10) ** int(exponent or 0) * scale
        if value == value.to_integral_value() and value <= _MAX_SIZE:
            return int(value)
    _reject(text, expected)


def sizes(text: str) -> list[int]:
    """Parse sizes with commas between them: "8k,16k" -> [8000, 16000]."""
    return [size(part) for part in text.split(",")]


def size_or_fit(text: str) -> int | str:
    """Parse a size, or return "fit"."""
    return text if text == "fit" else size(text, 'an integer or "fit", such as 32000, 32k, 100MB or 1e9')


def integer(text: str) -> int:
    """Parse an integer. The caller checks its range."""
    return int(_number(text, int, "an integer"))


def integer_or_none(text: str) -> int | None:
    """Parse an integer or "none"."""
    return None if text.lower() == "none" else integer(text)


def whole(most: int, least: int = 1) -> Callable[[str], int]:
    """Return a type for integers from least to most."""
    return lambda text: int(_number(text, int, f"an integer from {least} to {most}", least, most))


def fraction(text: str) -> float:
    """Parse a number. The caller checks its range."""
    return _number(text, float, "a number from 0 to 1")


def seconds(text: str) -> float:
    """Parse seconds from 0 to a million."""
    return _number(text, float, "from 0 to 1000000 seconds", 0, 1_000_000)


def name_and_value(text: str) -> tuple[str, str]:
    """ "region=eu-west-1" -> ("region", "eu-west-1")."""
    name, _, value = text.partition("=")
    if not (name and value):
        _reject(text, "NAME=VALUE, such as region=eu-west-1")
    return name, value


def unescaped(text: str) -> str:
    """Replace \\n, \\t, \\r, \\0, \\f, \\v, \\xHH, \\uHHHH, \\UHHHHHHHH and \\\\ as Python does."""

    def character(match: re.Match[str]) -> str:
        with suppress(ValueError):
            if len(match[0]) > 1 and match[0][1] in "xuUntr0fv\\":
                return match[0].encode("ascii").decode("unicode_escape")
        raise ArgumentTypeError(f"unknown escape {match[0]}. Write a backslash as \\\\.")

    return _ESCAPE.sub(character, text)


def path_word(text: str) -> Path:
    """Parse a local path."""
    if not text or "\0" in text:
        _reject(text, "a path")
    if is_url(text):
        _reject(text, "a local path, not a URL")
    return Path(text)


def _number(text: str, parse: Any, expected: str, least: float = -inf, most: float = inf) -> float:
    with suppress(ValueError):
        value: float = parse(text)
        if least <= value <= most:
            return value
    _reject(text, expected)


def _reject(text: str, expected: str) -> NoReturn:
    raise ArgumentTypeError(f"must be {expected} (got {shown(text)})")
