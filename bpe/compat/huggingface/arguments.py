"""Checks of arguments, with the errors of tokenizers: TypeError for a wrong type, OverflowError for a wrong size."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Collection, Iterable
from typing import Any, Final

import numpy as np

from bpe.errors import BadArgument, UnsupportedTokenizer, shown

_MAX_ID: Final = (1 << 32) - 1
_MAX_COUNT: Final = (1 << 64) - 1


def count(name: str, value: Any, most: int = _MAX_COUNT) -> int:
    """Return a length, an index or a number of tokens."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: must be an integer (got {shown(value)})") from None
    if not 0 <= number <= most:
        raise OverflowError(f"{name}: must be from 0 to {most} (got {number})")
    return number


def id_number(name: str, value: Any) -> int:
    """Return an ID, a type ID or the index of a word."""
    return count(name, value, _MAX_ID)


def text(name: str, value: Any) -> str:
    """Return a str. Raise UnicodeEncodeError for a lone surrogate."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: must be a str (got {shown(value)})")
    value.encode()
    return value


def flag(name: str, value: Any) -> bool:
    """Return a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: must be True or False (got {shown(value)})")
    return value


def one_of(name: str, value: Any, allowed: Collection[str]) -> str:
    """Return one of the allowed values. Raise BadArgument, a ValueError, for another str."""
    if text(name, value) not in allowed:
        raise BadArgument(f"{name}: must be one of {', '.join(allowed)} (got {shown(value)})")
    return str(value)


def warn_unknown(names: Iterable[str]) -> None:
    """Warn about arguments that tokenizers ignores with a warning."""
    for name in names:
        warnings.warn(f"Ignored unknown kwarg option {name}", stacklevel=3)


def camel(name: str) -> str:
    """Return the spelling in tokenizer.json: "merged_with_next" -> "MergedWithNext"."""
    return "".join(word.capitalize() for word in name.split("_"))


def snake(name: str) -> str:
    """Return the spelling of an argument: "MergedWithNext" -> "merged_with_next"."""
    return "".join("_" * (index > 0 and each.isupper()) + each.lower() for index, each in enumerate(name))


# -- texts to encode -----------------------------------------------------------------------------------------------


def input_text(value: Any) -> str:
    """Return a text to encode. Raise TypeError for a lone surrogate."""
    if not isinstance(value, str):
        raise TypeError(f"TextInputSequence must be str, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise TypeError(
            f"TextInputSequence must be str that UTF-8 can encode, but character {error.start} is a lone surrogate"
        ) from None
    return value


def input_words(value: Any) -> list[str]:
    """Return the words of a pre-tokenized text."""
    if not isinstance(value, (list, tuple, np.ndarray)) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"PreTokenizedInputSequence must be Union[List[str], Tuple[str]], got {shown(value)}")
    return [input_text(str(word)) for word in value]


def input_pair(value: Any, is_pretokenized: bool) -> list[Any]:
    """Return the one or two sequences in an item of a batch."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise TypeError(
            f"TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]], got {shown(value)}"
        )
    is_words = is_pretokenized and all(isinstance(word, str) for word in value)
    return [value] if is_words or len(value) != 2 else list(value)


# -- names without support -----------------------------------------------------------------------------------------


class _Unsupported:
    """Base of the classes of tokenizers that need another model than BPE."""


def unsupported(name: str) -> Any:
    """Return a class that can be imported, but raises UnsupportedTokenizer when it is called."""

    def refuse(*_: Any, **__: Any) -> None:
        raise UnsupportedTokenizer(f"{name}: not supported, since this package only has BPE. Use tokenizers.")

    return type(name, (_Unsupported,), {"__new__": refuse, "from_file": staticmethod(refuse)})
