"""What goes wrong, as exceptions that carry the exit code of the command line.

Each message is one line: what, where, which rule, what to do. Names and text that come from files are
escaped, so that a hostile name cannot drive a terminal.
"""

from __future__ import annotations

from tokenmill.stores.errors import ShortHelp
from tokenmill.stores.errors import printable as whole_printable


class FlatTokensError(Exception, metaclass=ShortHelp):
    """Anything this package reports to a user; exit_code is what the command line ends with."""

    exit_code = 1


class ArgumentError(FlatTokensError, ValueError):
    """An argument or option outside its range; nothing was touched."""

    exit_code = 2


class RangeError(ArgumentError, IndexError):
    """A sequence, row or position outside the array; an IndexError too, so that iteration ends where it
    should."""


class SplitError(ArgumentError, KeyError):
    """A name that is no split's; a KeyError too, as of a mapping."""

    __str__ = Exception.__str__  # a KeyError puts its message in quotes


class DatasetError(FlatTokensError, ValueError):
    """The dataset is unfinished, foreign or damaged."""

    exit_code = 3


class RefusedError(FlatTokensError):
    """Something is in the way that might be somebody's; nothing was touched."""

    exit_code = 6


def printable(text: str, limit: int = 200) -> str:
    """Text with control characters, line ends and lone surrogates escaped, cut to `limit` characters.

    "a\\x1b[2J" -> "a\\\\x1b[2J". Printable Unicode is kept."""
    shown = whole_printable(text)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
