"""Errors that several formats share. `path` is the JSON path, line or field of a value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer, shown

PATTERN_FORM: Final = '{"Regex": ...} or {"String": ...}'


@contextmanager
def within(path: object, separator: str = ": ") -> Iterator[None]:
    """Prefix the message of a BadTokenizer or BadArgument raised inside: "must be ..." -> "decoder: must be ..."."""
    try:
        yield
    except (BadTokenizer, BadArgument) as error:
        raise type(error)(f"{path}{separator}{error}") from None


def must_be(path: str, must: str, value: object) -> BadTokenizer:
    """Return the error for a value of the wrong type or range: ("model.vocab", "an object", 3)."""
    return BadTokenizer(f"{path}: must be {must} (got {shown(value)})")


def unsupported(path: str, value: object, supported: str) -> UnsupportedTokenizer:
    """Return the error for a valid value that is not supported."""
    return UnsupportedTokenizer(f"{path}: unsupported (got {shown(value)}). Supported: {supported}.")


def not_utf8(offset: int) -> BadTokenizer:
    """Return the error for a file that is not UTF-8 from this byte on."""
    return BadTokenizer(f"byte {offset}: not valid UTF-8")


def not_storable(what: str, form: str) -> UnsupportedTokenizer:
    """Return the error for a part of a tokenizer that a file format cannot express."""
    return UnsupportedTokenizer(f"{what}: cannot be stored in {form}. Save the tokenizer as tokenizer.json.")
