"""Counts the records of an input and decides what happens to bad ones.

A record is what holds one document: the text between separators, a JSON line, a row of a table. A record that has no
text is bad; --on-error says what happens to it. Invariant: records = documents + skipped.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tokenmill.errors import printable
from tokenmill.inputs import utf8
from tokenmill.inputs.blocks import read_range
from tokenmill.inputs.errors import FatalInput
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source

if TYPE_CHECKING:
    from typing_extensions import Buffer

SHOWN_BYTES = 80
MAX_ROLES = 16  # counted by name
MAX_RECOUNTED_BYTES = 16 << 20  # errors name the line of a record up to here, later only the byte
INVALID_UTF8 = "invalid UTF-8"
MALFORMED, FIELD_MISSING = "malformed", "field missing"
UNREADABLE = "unreadable file"
TOO_LONG = "longer than {limit} bytes (--max-record-bytes)"
_CHAT_FIELDS = ("messages", "conversations")


class RecordFault(ValueError):  # noqa: N818 - named after the fault
    """A bad record. reason: kind of fault, under which the record is counted."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class BadRecord(NamedTuple):
    """A record without a text.

    reason: kind of fault, under which the record is counted.
    detail: what exactly is wrong.
    place: offset of the record in the decompressed source, or its row.
    data: the bytes of the record, or the first of them.
    length: bytes of the whole record.
    line: index of its line, from the first line that this reading read.
    """

    reason: str
    detail: str
    place: int
    data: bytes
    length: int
    line: int | None = None
    is_row: bool = False


class Intake:
    """Counts records, and treats bad ones as the rules say.

    skipped: bad records by reason.
    unreadable: (source, error) of damaged files, which were read up to the damage.
    messages: messages of chats by role. dropped: messages that the template omits, by role.
    replaced: inserted U+FFFD.
    lines: (source, lines read of it), if another reading continues after them.
    lines_start: offset of the line that `BadRecord.line` counts from.
    rows_before: counts the rows of the source before the piece, if the places of its records begin at 0.
    """

    def __init__(self, rules: IntakeRules) -> None:
        self.rules = rules
        self.lines_start = 0
        self.rows_before: Callable[[], int] | None = None
        self.reset()

    def reset(self) -> None:
        """Set all counts to zero."""
        self.records = self.blank = self.replaced = 0
        self.skipped: dict[str, int] = {}
        self.unreadable: list[tuple[int, str]] = []
        self.messages: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self.lines: list[tuple[int, int]] = []

    def add_lines(self, source_index: int, lines: int) -> None:
        """Count lines, good, bad and blank, of a source. Another reading continues after them."""
        self.lines.append((source_index, lines))

    def add_messages(self, roles: Iterable[str], dropped: Iterable[str]) -> None:
        """Count the messages of a chat."""
        for counts, own in ((self.messages, roles), (self.dropped, dropped)):
            for role in own:
                name = role if role in counts or len(counts) < MAX_ROLES else "other"
                counts[name] = counts.get(name, 0) + 1

    def repair(self, text: Buffer) -> tuple[Buffer, int]:
        """Return (the text, with U+FFFD for invalid bytes if the rules say so; the first invalid byte, -1 if none).

        The text of a record goes through here once. A caller that gets an invalid byte reports a bad record.
        """
        repaired, replaced, bad = utf8.repair(text, self.rules.invalid == "replace")
        self.replaced += replaced
        return repaired, bad

    def bad(self, source_index: int, source: Source, record: BadRecord) -> None:
        """Count a bad record, and keep it under "quarantine".

        Raise FatalInput (exit 3) under "fail", or if there are more than max_errors.
        """
        if self.rules.on_error == "fail":
            raise FatalInput(_message(source, self.located(record), self))
        self.skipped[record.reason] = self.skipped.get(record.reason, 0) + 1
        self._check_error_count()
        if self.rules.on_error == "quarantine":
            self.set_aside(source_index, self.located(record))

    def located(self, record: BadRecord) -> BadRecord:
        """Return the record with its row in the source."""
        if self.rows_before is None or not record.is_row:
            return record
        return record._replace(place=record.place + self.rows_before())

    def bad_file(self, source_index: int, source: Source, error: Exception) -> None:
        """Count a damaged file; the documents before the damage stay. Under "fail", raise the error instead."""
        fails = self.rules.on_error == "fail"
        if isinstance(error, FatalInput) or (fails and isinstance(error, OSError)):
            raise error
        if fails:
            join = " Or pass" if str(error).endswith(".") else ". Pass"
            raise type(error)(f"{error}{join} --on-error skip to skip bad files.")
        detail = printable(f"{source.shown}: {error.strerror}" if isinstance(error, OSError) else error)
        self.unreadable.append((source_index, detail))
        self._check_error_count()
        if self.rules.on_error == "quarantine":
            self.set_aside(source_index, BadRecord(UNREADABLE, detail, 0, b"", source.size_bytes))

    def _check_error_count(self) -> None:
        check_error_count(sum(self.skipped.values()) + len(self.unreadable), self.rules.max_errors)

    def set_aside(self, source_index: int, record: BadRecord) -> None:
        """Keep a bad record. Subclasses that have a place for it override this method."""


def _message(source: Source, record: BadRecord, intake: Intake) -> str:
    line = _line_number(source, record, intake.lines_start)
    where = f"byte {record.place}"
    if record.is_row:
        where = f"row {record.place}"
    elif line is not None:
        where = f"line {line} ({where})"
    shown = record.data[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
    if shown:
        shown = f" (got {shown}{'...' if record.length > SHOWN_BYTES else ''})"
    return printable(
        f"{source.shown}: {where}: {record.detail}{shown}. {_fix(record, intake.rules.fields_option)}"
    )


def _line_number(source: Source, record: BadRecord, lines_start: int) -> int | None:
    """The number of a record's line in its source, from 1; None if it would take long to find."""
    is_divisible = source.kind.is_divisible
    if record.line is None or (is_divisible and record.place > MAX_RECOUNTED_BYTES):
        return None
    if lines_start == 0:
        return record.line + 1
    if not is_divisible:
        return None
    with source.open() as file:
        return read_range(file, source.shown, 0, lines_start).count(b"\n") + record.line + 1


def _fix(record: BadRecord, fields_option: str) -> str:
    """What to do about a bad record. If the first record is bad, often the whole file needs another option."""
    start = record.data[:SHOWN_BYTES].strip()
    if record.line == 0 and record.place <= len(codecs.BOM_UTF8):  # the first of the file
        if start.startswith(b"["):
            return "Rename a JSON array to .json, or write one record per line with jq -c '.[]'."
        if start.startswith(b"{") and record.reason == MALFORMED and record.length < SHOWN_BYTES:
            return "Write one record per line, for example with jq -c '.'."
    fix = "Fix the record, or pass --on-error skip to skip bad records."
    if record.reason == FIELD_MISSING:
        with suppress(ValueError, RecursionError):  # data may be only the beginning of the record
            names = list(json.loads(record.data))[:10]
            chats = "".join(
                f"Convert chats with --messages-field {name}. " for name in names if name in _CHAT_FIELDS
            )
            return f"Choose a field with {fields_option} (fields: {', '.join(names) or 'none'}). {chats}{fix}"
    return fix


def check_error_count(count: int, max_errors: int | None) -> None:
    """Raise FatalInput (exit 3) if there are more bad records and files than allowed."""
    if max_errors is not None and count > max_errors:
        raise FatalInput(
            f"--max-errors: more than {max_errors} bad records or files. Raise it, or pass --on-error fail to see the "
            "first one."
        )
