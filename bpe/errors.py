"""What can go wrong in bpe, one class a kind; each carries the exit code of a command that ends with it.

A message is one line: what is wrong, where (file, byte offset, JSON path, merge number), the rule, the way out.
Text quoted from a file goes through `shown`, so neither a newline nor a terminal escape gets into a message.
"""

# ruff: noqa: N818 - named for what is wrong: InvalidText, UnsupportedTokenizer
from __future__ import annotations

from typing import ClassVar


class BpeError(Exception):
    """Base of all errors that are the user's to mend; `exit_code` is 1 unless a subclass says better."""

    exit_code: ClassVar[int] = 1


class BadArgument(BpeError, ValueError):
    """An argument or option outside its range."""

    exit_code: ClassVar[int] = 2


class BadTokenizer(BpeError, ValueError):
    """A tokenizer file or vocabulary that can't be read or contradicts itself."""

    exit_code: ClassVar[int] = 2


class UnsupportedTokenizer(BadTokenizer):
    """A tokenizer file that asks for something this package does not do; the message names its JSON path."""


class MissingInput(BpeError, FileNotFoundError):
    """Input files that are not there or are no regular files; the message lists them all."""

    exit_code: ClassVar[int] = 2


class InvalidText(BpeError, ValueError):
    """Text that is not valid UTF-8; the message names the source and the byte offset."""

    exit_code: ClassVar[int] = 3


class EnvironmentFailure(BpeError, OSError):
    """A file that could not be read or written: space, permission, I/O."""

    exit_code: ClassVar[int] = 4


def shown(value: object, limit: int = 60) -> str:
    """The value as a printable line of at most `limit` characters: "a\\nb" -> 'a\\nb' in quotes; long ones end in …"""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """The text with control characters and undecodable bytes escaped, on one line: "a\\nb" -> "a\\\\nb"."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )
