"""Checks of arguments. An ArgumentError of one line names the argument, the rule and the value."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import ArgumentError, printable

LONGEST_NAME = 255  # bytes, of a file or folder


def invalid(name: str, rule: str, value: Any, fix: str = "") -> ArgumentError:
    """The error `NAME: RULE (got VALUE). FIX.` for an argument."""
    return ArgumentError(f"{name}: {rule} (got {shown(value)})" + (f". {fix}" if fix else ""))


def integer(name: str, value: Any, least: int | None = None, greatest: int | None = None) -> int:
    """A whole number of any integer type as an int, in [least, greatest]. None for no limit."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise invalid(name, "must be an integer", value) from None
    if least is not None and greatest is None and number < least:
        raise invalid(name, f"must be at least {least}", number)
    if greatest is not None and not (least or 0) <= number <= greatest:
        raise invalid(name, f"must be in [{least or 0}, {greatest}]", number)
    return number


def flag(name: str, value: Any) -> bool:
    """True or False, also of numpy."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise invalid(name, "must be True or False", value)
    return bool(value)


def choice(name: str, value: Any, choices: Iterable[str], error: type[ArgumentError] = ArgumentError) -> str:
    """One of a few words."""
    words = list(choices)
    if not isinstance(value, str) or value not in words:
        raise error(f"{name}: must be one of {', '.join(words)} (got {shown(value)})")
    return value


def path(name: str, value: Any) -> Path:
    """A path, from a str or an object with __fspath__. Its names must be valid for the system."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise invalid(name, "must be a path", value)
    given = Path(value)
    if any(len(part.encode(errors="surrogatepass")) > LONGEST_NAME for part in given.parts):
        raise invalid(name, f"names in a path have at most {LONGEST_NAME} bytes", value)
    return given


def count_of(name: str, value: Any) -> int:
    """The length of a list, tuple or array."""
    is_list = hasattr(value, "__len__") and not isinstance(value, str | bytes | dict)
    # A split has a length, and an array of no dimensions the method alone.
    if not is_list or hasattr(value, "encoded_tokens") or getattr(value, "ndim", 1) == 0:
        raise invalid(name, "must be a list", value)
    return len(value)


def array(name: str, values: Any, rule: str) -> npt.NDArray[Any]:
    """An array of one dimension. rule: the text of the error for anything else."""
    try:
        found = np.asarray(values)
    except ValueError:  # lists of different lengths
        found = np.empty(())
    if found.ndim != 1:
        raise invalid(name, rule, values)
    return found


def integers(name: str, values: Any) -> npt.NDArray[Any]:
    """Integers in one dimension, of any integer type."""
    rule = "must be integers in one dimension"
    found = array(name, values, rule)
    if len(found) and found.dtype.kind not in "iu":
        raise invalid(name, rule, values)
    return found


def split(name: str, value: Any, *attributes: str) -> None:
    """Raise ArgumentError unless `value` has the attributes of a split such as dataset.train."""
    if not all(hasattr(value, attribute) for attribute in attributes):
        raise invalid(name, "must be a split such as dataset.train", value)


def tokenizer_file(path: Path | None) -> None:
    """Raise ArgumentError if --tokenizer is given and is not a file."""
    if path is not None and not path.is_file():
        raise ArgumentError(f"--tokenizer: no such file (got {printable(str(path))})")


def shown(value: Any) -> str:
    """A value for an error message."""
    return printable(repr(value), 60)
