"""How the words of a command line are read, as types for argparse: sizes, numbers, seconds, NAME=VALUE, paths."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from tokenmill.errors import BadArgument, shown
from tokenmill.inputs.sizes import parse_size, parse_sizes

_T = TypeVar("_T")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.|$)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "f": "\f", "v": "\v", "\\": "\\"}


def size(text: str) -> int:
    """32k, 100MB, 64MiB: a whole number (tokenmill/inputs/sizes.py)."""
    return _checked(parse_size, text)


def sizes(text: str) -> list[int]:
    """Sizes with commas between them."""
    return _checked(parse_sizes, text)


def size_or_fit(text: str) -> int | str:
    """A size, or "fit"."""
    if text == "fit":
        return text
    try:
        return size(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            str(error).replace("integer such", 'integer or "fit", such')
        ) from None


def integer(text: str) -> int:
    """A whole number of any size; what takes it knows its range."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an integer (got {shown(text)})") from None


def integer_or_none(text: str) -> int | None:
    """A whole number, or "none"."""
    return None if text.lower() == "none" else integer(text)


def whole(most: int, least: int = 1) -> Callable[[str], int]:
    """What reads a whole number in [least, most]."""

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"must be an integer from {least} to {most} (got {_number_text(text)})"
            )
        return value

    return read


def _number_text(text: str) -> str:
    return text if re.fullmatch(r"[-+]?[0-9.]{1,40}", text) else shown(text, 40)


def fraction(text: str) -> float:
    """A number; what takes it knows that it is from 0 to 1."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1 (got {shown(text)})") from None


def seconds(text: str) -> float:
    """Seconds, from 0 to a million."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1000000 seconds (got {_number_text(text)})")
    return value


def name_and_value(text: str) -> tuple[str, str]:
    """NAME=VALUE, such as region=eu-west-1."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(
            f"must be NAME=VALUE, such as region=eu-west-1 (got {shown(text, 40)})"
        )
    return name, value


def unescaped(text: str) -> str:
    """Text with \\n, \\t, \\r, \\0, \\f, \\v, \\xHH, \\uHHHH, \\UHHHHHHHH and \\\\ as in Python, no others."""

    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _ESCAPED:
            return _ESCAPED[escape]
        if len(escape) > 1:
            code = int(escape[1:], 16)
            if code <= 0x10FFFF:
                return chr(code)
        raise argparse.ArgumentTypeError(f"unknown escape \\{escape}. Write a backslash as \\\\.")

    return _ESCAPE.sub(character, text)


def path_word(text: str) -> Path:
    """A path of this machine."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"must be a path (got {text!r})")
    from tokenmill.stores.url import is_url  # not before a path is read: help needs no stores

    if is_url(text):  # a path would have one slash of the two, and no such folder
        raise argparse.ArgumentTypeError(f"must be a local path, not a URL (got {text!r})")
    return Path(text)  # of an empty text it would make the current folder


def _checked(read: Callable[[str, str], _T], text: str) -> _T:
    try:
        return read(text, "")
    except BadArgument as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from None
