"""The errors that every package shares, and how text from files is made safe to print.

Messages follow `WHERE: WHAT (got VALUE). FIX.` on one line. WHERE is a file with a byte, row or JSON path, or the name
of an argument. Each class has an exit code for commands and a stable code, which `--debug` prints.
"""

# ruff: noqa: N818 - named after the fault: BadArgument, Refused
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class TokenmillError(Exception):
    """Base class of all errors that users can fix.

    exit_code: exit status of a command that ends with this error.
    code: stable identifier of the class.
    """

    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "E-RUN-001"


class BadArgument(TokenmillError, ValueError):
    """An invalid argument or option. Nothing was written."""

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "E-ARGUMENT-001"


class Refused(TokenmillError):
    """An action that would overwrite data or mix incompatible data. The message names the option that allows it."""

    exit_code: ClassVar[int] = 6
    code: ClassVar[str] = "E-RUN-002"


class LibraryPanic(TokenmillError):
    """A panic in an extension module written in Rust, which Python does not derive from Exception."""

    exit_code: ClassVar[int] = 4
    code: ClassVar[str] = "E-SYSTEM-005"


class Advice(str):
    """A note of an exception (`BaseException.add_note`) with the next step for the user, which commands show."""


def without_panic(error: BaseException) -> BaseException:
    """Return the error itself, or a LibraryPanic for a panic of an extension module.

    A panic is recognized by the name of its module, because its class cannot be imported.
    """
    if type(error).__module__ != "pyo3_runtime":
        return error
    return LibraryPanic(
        f"a library failed unexpectedly ({printable(error)}). Check the input and the settings."
    )


def not_installed(where: str, package: str, extra: str) -> str:
    """Return the message for an optional package that is missing. extra: the extra of tokenmill that installs it."""
    return f"{where}: requires the package {package}. Run pip install 'tokenmill[{extra}]'."


def printable(text: object) -> str:
    """Escape control characters and undecodable bytes, which is safe for a terminal: "a\\nb" -> "a\\\\nb"."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in str(text)
    )


def shown(value: object, limit: int = 60) -> str:
    """Return the repr of a value on one printable line of at most `limit` characters; longer ones end in "…"."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def with_sentence(message: object, sentence: str) -> str:
    """Append a sentence: ("a.txt: not UTF-8", "Convert it.") -> "a.txt: not UTF-8. Convert it."."""
    return f"{str(message).removesuffix('.')}. {sentence}"


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Set the path of an OSError raised inside, since the system does not say which file a write was for."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise
