"""Rows of tables and files of archives: report bad ones, and check or repair their UTF-8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenmill.inputs import utf8
from tokenmill.inputs.documents import Reading
from tokenmill.inputs.intake import INVALID_UTF8, BadRecord

if TYPE_CHECKING:
    from typing_extensions import Buffer


def bad_row(
    reading: Reading, row: int, reason: str, detail: str, data: Buffer = b"", length: int | None = None
) -> None:
    """Report a bad record. data: its bytes, or the first of `length`."""
    data = bytes(data)
    size = len(data) if length is None else length
    record = BadRecord(reason, detail, row, data, size, is_row=True)
    reading.intake.bad(reading.source_index, reading.source, record)


def valid_row(reading: Reading, row: int, text: bytes, name: str = "") -> bytes | None:
    """Return the text as valid UTF-8, or report the row and return None. name: prefix of the error."""
    repaired, invalid = reading.intake.repair(text)
    if invalid < 0:
        return bytes(repaired)
    detail = utf8.invalid_byte(invalid, text[invalid], " of the text")
    bad_row(reading, row, INVALID_UTF8, f"{name}{detail}", text)
    return None
