"""Errors of datasets and loaders."""

from __future__ import annotations

from tokenmill.errors import BadArgument, Refused, TokenmillError
from tokenmill.errors import printable as whole_printable

ArgumentError = BadArgument
RefusedError = Refused
FlatTokensError = TokenmillError

RESTORE = "Restore it or convert again."
CONVERT_AGAIN = "Convert again."


class RangeError(ArgumentError, IndexError):
    """A sequence, row or position outside the array. An IndexError too, so that iteration ends."""

    code = "E-ARGUMENT-002"


class SplitError(ArgumentError, KeyError):
    """An unknown split name. A KeyError too, as for a mapping."""

    code = "E-ARGUMENT-003"
    __str__ = Exception.__str__  # KeyError would quote the message


class DatasetError(FlatTokensError, ValueError):
    """An unfinished or damaged dataset, or one of another format."""

    exit_code = 3
    code = "E-DATASET-001"


def damaged(where: object, what: str, fix: str = RESTORE) -> DatasetError:
    """Return the error `WHERE: WHAT. FIX.` for a file, array or folder of a dataset."""
    return DatasetError(f"{printable(str(where))}: {what}. {fix}")


def cause(error: Exception, limit: int = 80) -> str:
    """Return the message of another library's exception on one line: "missing 'name'" for a KeyError."""
    text = f"missing {error}" if isinstance(error, KeyError) else str(error)
    return printable(text or type(error).__name__, limit)


def printable(text: str, limit: int = 200) -> str:
    """Escape control characters and cut the text to `limit` characters: "a\\x1b[2J" -> "a\\\\x1b[2J"."""
    shown = whole_printable(text)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."
