"""Errors of tokenizers, training and counting."""

# ruff: noqa: N818 - named after the fault: BadTokenizer, UncoveredText
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import ClassVar

from tokenmill.errors import BadArgument as BadArgument
from tokenmill.errors import Refused as Refused
from tokenmill.errors import TokenmillError
from tokenmill.errors import printable as printable
from tokenmill.errors import shown as shown
from tokenmill.errors import with_sentence as with_sentence
from tokenmill.inputs.errors import InvalidText as InvalidText

BpeError = TokenmillError


class BadTokenizer(BpeError, ValueError):
    """A tokenizer file or vocabulary that cannot be read or contradicts itself."""

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "E-TOKENIZER-001"


class UnsupportedTokenizer(BadTokenizer):
    """A tokenizer file with a feature that is not supported. The message names its JSON path."""

    code: ClassVar[str] = "E-TOKENIZER-002"


class UnsupportedPattern(UnsupportedTokenizer):
    """A pre-tokenization pattern with a construct that is not supported. The message names the construct."""

    code: ClassVar[str] = "E-TOKENIZER-003"


class UncoveredText(BpeError, ValueError):
    """Text that the tokenizer's pattern does not match, so that encoding would lose it.

    place: byte offset of the unmatched character. where: name of the text in the message.
    """

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "E-TOKENIZER-004"

    def __init__(self, pattern: str, left_out: str, place: int, where: str = "text") -> None:
        super().__init__(pattern, left_out, place, where)  # the arguments that pickle needs
        self.pattern, self.left_out, self.place, self.where = pattern, left_out, place, where

    def __str__(self) -> str:
        return (
            f"{self.where}: byte {self.place} ({shown(self.left_out)}) is not matched by the pattern "
            f"{shown(self.pattern, 80)} and would be lost. Use a pattern that matches all text."
        )

    def moved(self, start: int, where: str | None = None) -> UncoveredText:
        """Return the error for a longer text in which this one starts at byte `start`."""
        return UncoveredText(self.pattern, self.left_out, start + self.place, where or self.where)


class MissingInput(BpeError, FileNotFoundError):
    """Input files that do not exist or are not regular files. The message lists them all."""

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "E-INPUT-004"


class BadCounts(BpeError, ValueError):
    """A damaged or truncated counts file, or a file of another kind. The message names the file and the byte."""

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "E-COUNTS-001"


class EnvironmentFailure(BpeError, OSError):
    """A file that could not be read or written: space, permission or an I/O error."""

    exit_code: ClassVar[int] = 4
    code: ClassVar[str] = "E-SYSTEM-001"


class NotEnoughMemory(BpeError, MemoryError):
    """Work that does not fit into the memory limit. The message says how much it needs."""

    exit_code: ClassVar[int] = 5
    code: ClassVar[str] = "E-SYSTEM-003"


class Stopped(KeyboardInterrupt):
    """Ctrl-C (exit code 130) or a termination signal (143). The message names saved files and how to resume."""

    def __init__(self, message: str = "interrupted", exit_code: int = 130) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def check_range(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise BadArgument unless the value is an integer in [least, most]."""
    check_whole(name, value)
    number = operator.index(value)  # type: ignore[arg-type]
    if number < least:
        raise BadArgument(f"{name}: must be at least {least} (got {shown(number)})")
    if most is not None and number > most:
        raise BadArgument(f"{name}: must be at most {most} (got {shown(number)})")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise BadArgument unless the value is one of the choices."""
    if value not in choices:
        raise BadArgument(f"{name}: must be one of {', '.join(choices)} (got {shown(value)})")


def lone_surrogate(where: str, error: UnicodeEncodeError) -> str:
    """Return the message for text that UTF-8 cannot encode."""
    found = shown(error.object[error.start])
    return f"{where}: character {error.start} is a lone surrogate, invalid in UTF-8 (got {found})"


def system_failure(path: object, error: OSError) -> EnvironmentFailure:
    """Return the EnvironmentFailure for a file that the system could not open, read or write."""
    return EnvironmentFailure(f"{path}: {error.strerror or error}")


def check_whole(name: str, value: object) -> None:
    """Raise BadArgument unless the value is an integer; NumPy integers are."""
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise BadArgument(f"{name}: not an integer (got {shown(value)})") from None
