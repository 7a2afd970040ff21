"""Types of command-line arguments for argparse: sizes, numbers, seconds, NAME=VALUE, escaped text, paths."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from tokenmill.errors import BadArgument, shown
from tokenmill.inputs.sizes import parse_size, parse_sizes
from tokenmill.stores.url import is_url

_T = TypeVar("_T")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.|$)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "f": "\f", "v": "\v", "\\": "\\"}


def size(text: str) -> int:
    """Parse a size: 32k, 100MB, 64MiB."""
    return _checked(parse_size, text)


def sizes(text: str) -> list[int]:
    """Parse sizes with commas between them."""
    return _checked(parse_sizes, text)


def size_or_fit(text: str) -> int | str:
    """Parse a size, or return "fit"."""
    try:
        return text if text == "fit" else size(text)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(str(error).replace("integer such", 'integer or "fit", such')) from None


def integer(text: str) -> int:
    """Parse an integer. The caller checks its range."""
    return _number(int, text, "an integer")


def integer_or_none(text: str) -> int | None:
    """Parse an integer or "none"."""
    return None if text.lower() == "none" else integer(text)


def whole(most: int, least: int = 1) -> Callable[[str], int]:
    """Return a type for integers from least to most."""
    return lambda text: _number(_digits, text, f"an integer from {least} to {most}", least, most)


def fraction(text: str) -> float:
    """Parse a number. The caller checks its range."""
    return _number(float, text, "a number from 0 to 1")


def seconds(text: str) -> float:
    """Parse seconds from 0 to a million."""
    return _number(float, text, "from 0 to 1000000 seconds", 0, 1e6)


def name_and_value(text: str) -> tuple[str, str]:
    """ "region=eu-west-1" -> ("region", "eu-west-1")."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ArgumentTypeError(f"must be NAME=VALUE, such as region=eu-west-1 (got {shown(text, 40)})")
    return name, value


def unescaped(text: str) -> str:
    """Replace \\n, \\t, \\r, \\0, \\f, \\v, \\xHH, \\uHHHH, \\UHHHHHHHH and \\\\ as Python does."""

    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _ESCAPED:
            return _ESCAPED[escape]
        if len(escape) > 1 and (code := int(escape[1:], 16)) <= 0x10FFFF:
            return chr(code)
        raise ArgumentTypeError(f"unknown escape \\{escape}. Write a backslash as \\\\.")

    return _ESCAPE.sub(character, text)


def path_word(text: str) -> Path:
    """Parse a local path."""
    if not text or "\0" in text:
        raise ArgumentTypeError(f"must be a path (got {text!r})")
    if is_url(text):
        raise ArgumentTypeError(f"must be a local path, not a URL (got {text!r})")
    return Path(text)


def _digits(text: str) -> int:
    return int(text if text.isascii() and text.isdigit() else "")


def _number(
    parse: Callable[[str], _T], text: str, expected: str, least: float = -math.inf, most: float = math.inf
) -> _T:
    with suppress(ValueError):
        value: Any = parse(text)
        if least <= value <= most:
            return value  # type: ignore[no-any-return]
    raise ArgumentTypeError(f"must be {expected} (got {shown(text, 40)})")


def _checked(parse: Callable[[str, str], _T], text: str) -> _T:
    try:
        return parse(text, "")
    except BadArgument as error:
        raise ArgumentTypeError(str(error).strip()) from None
