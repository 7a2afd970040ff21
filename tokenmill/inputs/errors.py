"""Errors of inputs. The message names the file and the byte, row or record."""

# ruff: noqa: N818 - named after the fault: BadInput, InvalidText
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tokenmill.errors import TokenmillError, printable


class BadInput(TokenmillError):
    """A damaged or malformed source, or one that changed while it was read."""

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "E-INPUT-001"


class FatalInput(BadInput):
    """Bad input that ends the run even if bad files are skipped: a changed source, or more than --max-errors."""

    code: ClassVar[str] = "E-INPUT-002"


class InvalidText(TokenmillError, ValueError):
    """Text that is not valid UTF-8. The message names the source and the byte offset."""

    exit_code: ClassVar[int] = 3
    code: ClassVar[str] = "E-INPUT-003"


def changed_while_read(path: str, how: str) -> FatalInput:
    """Return the error for a source that another program wrote to. how: "ends at byte 7"."""
    return FatalInput(
        f"{printable(path)}: changed while it was read ({how}). Run the command again when nothing writes to it."
    )


def column_index(path: str, columns: Sequence[str], column: str, option: str = "--text-field") -> int:
    """Return the index of a column. Raise BadInput unless the table has the column exactly once."""
    count = columns.count(column)
    if count > 1:
        raise BadInput(f"{printable(path)}: the column {column!r} must occur once (got {count})")
    if not count:
        names = printable(", ".join(columns[:20])) or "none"
        raise BadInput(
            f"{printable(path)}: no column {column!r} (columns: {names}). Choose one with {option}."
        )
    return columns.index(column)
