"""What can go wrong in bpe, one class a kind; each carries the exit code of a command that ends with it.

A message is one line: what is wrong, where (file, byte offset, JSON path, merge number), the rule, the way out.
Text quoted from a file goes through `shown`, so neither a newline nor a terminal escape gets into a message.
"""

# ruff: noqa: N818 - named for what is wrong: InvalidText, UnsupportedTokenizer
from __future__ import annotations

import operator
from typing import ClassVar

from tokenmill.inputs.errors import BadArgument as BadArgument
from tokenmill.inputs.errors import InvalidText as InvalidText
from tokenmill.inputs.errors import TokenmillError
from tokenmill.inputs.errors import printable as printable
from tokenmill.inputs.errors import shown as shown

BpeError = TokenmillError  # the base of all packages' errors, as bpe names it


class BadTokenizer(BpeError, ValueError):
    """A tokenizer file or vocabulary that can't be read or contradicts itself."""

    exit_code: ClassVar[int] = 2


class UnsupportedTokenizer(BadTokenizer):
    """A tokenizer file that asks for something this package does not do; the message names its JSON path."""


class UnsupportedPattern(UnsupportedTokenizer):
    """A pattern with a construct that no syntax tree here can say; the message names it and its place."""


class UncoveredText(BpeError, ValueError):
    """Text that the matches of a tokenizer's pattern leave out, which would be lost.

    place: the byte of the text. where: what the message calls the text.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, pattern: str, left_out: str, place: int, where: str = "text") -> None:
        super().__init__(pattern, left_out, place, where)  # which make it again where it is pickled
        self.pattern, self.left_out, self.place, self.where = pattern, left_out, place, where

    def __str__(self) -> str:
        return (
            f"{self.where}: byte {self.place} ({shown(self.left_out)}) is matched by no part of the pattern "
            f"{shown(self.pattern, 80)}, so this text would be lost; a pattern must match all text"
        )

    def moved(self, start: int, where: str | None = None) -> UncoveredText:
        """The same of a longer text, in which this one begins at the byte `start`."""
        return UncoveredText(self.pattern, self.left_out, start + self.place, where or self.where)


class MissingInput(BpeError, FileNotFoundError):
    """Input files that are not there or are no regular files; the message lists them all."""

    exit_code: ClassVar[int] = 2


class BadCounts(BpeError, ValueError):
    """A counts file that is damaged, cut short, or none at all; the message names the file and the byte."""

    exit_code: ClassVar[int] = 3


class EnvironmentFailure(BpeError, OSError):
    """A file that could not be read or written: space, permission, I/O."""

    exit_code: ClassVar[int] = 4


class NotEnoughMemory(BpeError, MemoryError):
    """What is asked for does not fit into the memory that may be used; the message says how much it takes."""

    exit_code: ClassVar[int] = 5


class Refused(BpeError):
    """Going on would mix what does not belong together: an input that changed since it was counted."""

    exit_code: ClassVar[int] = 6


class Stopped(KeyboardInterrupt):
    """Ctrl-C (exit code 130) or a request to end (143); the message says what is kept and how to go on."""

    def __init__(self, message: str = "interrupted", exit_code: int = 130) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def check_whole(name: str, value: object) -> None:
    """Nothing, or BadArgument if the value is no whole number; numpy's integers are."""
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise BadArgument(f"{name} must be a whole number, got {shown(value)}") from None
