"""What callers give, checked in one way: an ArgumentError of one line names the argument, the rule and the value."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flat_tokens.errors import ArgumentError, printable

LONGEST_NAME = 255  # bytes, of a file or folder


def integer(name: str, value: Any, least: int | None = None, greatest: int | None = None) -> int:
    """A whole number of any integer type as an int, in [least, greatest] as far as they are given."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} must be an integer, got {shown(value)}") from None
    if least is not None and greatest is None and number < least:
        raise ArgumentError(f"{name} must be at least {least}, got {number}")
    if greatest is not None and not (least or 0) <= number <= greatest:
        raise ArgumentError(f"{name} must be in [{least or 0}, {greatest}], got {number}")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False, numpy's too."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise ArgumentError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def choice(name: str, value: Any, choices: Iterable[str], error: type[ArgumentError] = ArgumentError) -> str:
    """One of a few words."""
    words = list(choices)
    if not isinstance(value, str) or value not in words:
        raise error(f"{name} must be one of {', '.join(words)}, got {shown(value)}")
    return value


def path(name: str, value: Any) -> Path:
    """Where something lies: a str or a path whose names the system can have, not empty."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise ArgumentError(f"{name} must be a path, got {shown(value)}")
    given = Path(value)
    if any(len(part.encode(errors="surrogatepass")) > LONGEST_NAME for part in given.parts):
        raise ArgumentError(f"{name} has a name of more than {LONGEST_NAME} bytes, got {shown(value)}")
    return given


def count_of(name: str, value: Any) -> int:
    """How many a list, tuple or array has."""
    is_list = hasattr(value, "__len__") and not isinstance(value, str | bytes | dict)
    # A split has a length, and an array of no dimensions the method alone.
    if not is_list or hasattr(value, "encoded_tokens") or getattr(value, "ndim", 1) == 0:
        raise ArgumentError(f"{name} must be a list, got {shown(value)}")
    return len(value)


def split(name: str, value: Any, *attributes: str) -> None:
    """Something that can be read like a split, `dataset.train`."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise ArgumentError(f"{name} must be a split such as dataset.train, got {shown(value)}")


def shown(value: Any) -> str:
    """A value as a message shows it."""
    return printable(repr(value), 60)
