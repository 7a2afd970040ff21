"""Arguments checked as tokenizers checks them: TypeError for another type, OverflowError for a number out of range."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Collection, Iterable
from typing import Any

from bpe.errors import BadArgument, shown

_IDS = 1 << 32  # an id is less
_COUNTS = 1 << 64  # so is a length or a place


def count(name: str, value: Any) -> int:
    """A length, a place or a number of tokens."""
    return _whole(name, value, _COUNTS)


def id_number(name: str, value: Any) -> int:
    """An id, a type or the number of a word."""
    return _whole(name, value, _IDS)


def _whole(name: str, value: Any, stop: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: must be an integer (got {shown(value)})") from None
    if not 0 <= number < stop:
        raise OverflowError(f"{name}: must be at least 0 and below {stop} (got {number})")
    return number


def text(name: str, value: Any) -> str:
    """A text. UnicodeEncodeError for one with a lone surrogate."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: must be a str (got {shown(value)})")
    value.encode()
    return value


def flag(name: str, value: Any) -> bool:
    """True or False, nothing that counts as one of them."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: must be True or False (got {shown(value)})")
    return value


def one_of(name: str, value: Any, allowed: Collection[str]) -> str:
    """One of these texts; BadArgument, a ValueError, for another."""
    if text(name, value) not in allowed:
        raise BadArgument(f"{name}: must be one of {', '.join(allowed)} (got {shown(value)})")
    return str(value)


def warn_unknown(names: Iterable[str]) -> None:
    """A warning for arguments that tokenizers tells and ignores, too."""
    for name in names:
        warnings.warn(f"Ignored unknown kwarg option {name}", stacklevel=3)
