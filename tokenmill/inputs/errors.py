"""What can go wrong with what is read, one class a kind; each carries the exit code of a command that ends with it.

A message is one line: what is wrong, where (file, byte, row), the rule, the way out. Exit codes are those of all
commands: 2 bad arguments, 3 bad input data, 4 environment (space, permission, I/O).
"""

# ruff: noqa: N818 - named for what is wrong: BadInput, InvalidText
from __future__ import annotations

from types import TracebackType
from typing import ClassVar

from tokenmill.stores.errors import TokenmillError as TokenmillError
from tokenmill.stores.errors import printable as printable


class BadArgument(TokenmillError, ValueError):
    """An argument or option that cannot work; nothing was written."""

    exit_code: ClassVar[int] = 2


class BadInput(TokenmillError):
    """A source that is not what it should be, or that changed while it was read."""

    exit_code: ClassVar[int] = 3


class FatalInput(BadInput):
    """Bad input that ends the run even where bad files are skipped: one that changed, or more than --max-errors."""


class InvalidText(TokenmillError, ValueError):
    """Text that is not valid UTF-8; the message names the source and the byte offset."""

    exit_code: ClassVar[int] = 3


def shown(value: object, limit: int = 60) -> str:
    """The value as a printable line of at most `limit` characters: "a\\nb" -> 'a\\nb' in quotes; long ones end in …"""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


class naming:  # noqa: N801 - used like contextlib.suppress
    """Give an OSError raised inside the path it is about: the system does not say which file a write was for."""

    def __init__(self, path: object) -> None:
        self._path = path

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError) and error.filename is None and error.errno is not None:
            error.filename = str(self._path)
