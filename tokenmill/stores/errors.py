"""What can go wrong in a store, one class a kind; each carries the exit code of a command that ends with it.

A message is one line: the URL without credentials, the cause, what to do. The errors are pickled between processes,
so each is made of its message alone.
"""

# ruff: noqa: N818 - named for what is wrong: StoreNotFound, AlreadyThere
from __future__ import annotations

from typing import Any, ClassVar


class ShortHelp(type):
    """help() shows the attributes that an error adds, without those that all of Python's errors have."""

    def __dir__(cls) -> list[str]:
        return [
            name for name in super().__dir__() if not hasattr(UnicodeDecodeError, name) or name in vars(cls)
        ]


class TokenmillError(Exception, metaclass=ShortHelp):
    """Base of all errors that are the user's to mend, in every package; `exit_code` is 1 unless a subclass says better.

    counted: what was counted until then, where counting ended with it and may go on (bpe's CountSet).
    """

    exit_code: ClassVar[int] = 1
    counted: Any = None


class StoreError(TokenmillError):
    """A store that can't be read or written: no answer, no space, a server's fault. Base of the others."""

    exit_code: ClassVar[int] = 4


class StoreNotFound(StoreError):
    """An object, a file or a bucket that is not there."""

    exit_code: ClassVar[int] = 3


class StoreChanged(StoreError):
    """An object that is another than the one that was planned: it was written since."""

    exit_code: ClassVar[int] = 3


class StoreDenied(StoreError):
    """Credentials that are missing, wrong or expired, or that do not allow what was tried; a wrong region."""

    exit_code: ClassVar[int] = 4


class AlreadyThere(StoreError):
    """An object that was to be put only if absent, and is there."""

    exit_code: ClassVar[int] = 6


class UnknownScheme(StoreError):
    """A URL that no store here can open, or an option that its store does not know."""

    exit_code: ClassVar[int] = 2


class LibraryPanic(TokenmillError):
    """A panic in an extension module written in Rust, which Python does not derive from Exception."""

    exit_code: ClassVar[int] = 4


def without_panic(error: BaseException) -> BaseException:
    """The error itself, or a LibraryPanic for the panic of an extension module.

    A panic is recognized by the name of its module, because its class cannot be imported.
    """
    if type(error).__module__ != "pyo3_runtime":
        return error
    return LibraryPanic(
        f"a library failed unexpectedly ({printable(error)}); check the input and the settings"
    )


def printable(text: object) -> str:
    """`text` with control characters and undecodable bytes escaped, safe for a terminal: "a\\nb" -> "a\\\\nb"."""
    if str(text).isprintable():
        return str(text)
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in str(text)
    )
