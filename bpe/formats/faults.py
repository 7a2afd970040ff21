"""Errors that several formats share. `path` is the JSON path, line or field of the value."""

from __future__ import annotations

from typing import Final

from bpe.errors import BadTokenizer, UnsupportedTokenizer, shown

PATTERN_FORM: Final = '{"Regex": ...} or {"String": ...}'


def must_be(path: str, must: str, value: object) -> BadTokenizer:
    """Return the error for a value of the wrong type or range: ("model.vocab", "an object", 3)."""
    return BadTokenizer(f"{path}: must be {must} (got {shown(value)})")


def unsupported(path: str, value: object, supported: str) -> UnsupportedTokenizer:
    """Return the error for a valid value that is not supported."""
    return UnsupportedTokenizer(f"{path}: unsupported (got {shown(value)}). Supported: {supported}.")


def not_utf8(error: UnicodeDecodeError) -> BadTokenizer:
    """Return the error for a file that is not UTF-8."""
    return BadTokenizer(f"byte {error.start}: not valid UTF-8")


def not_storable(what: str, form: str) -> UnsupportedTokenizer:
    """Return the error for a part of a tokenizer that a file format cannot express."""
    return UnsupportedTokenizer(f"{what}: cannot be stored in {form}. Save the tokenizer as tokenizer.json.")
