"""What becomes of the records of a corpus: taken in, or found bad and treated as --on-error says. Each is counted.

A *record* is what an input holds one document in: a stretch of text between separators, a JSON line, a Parquet row.
Records that cannot give their text are *bad*. Conservation: records = documents + skipped.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from tokenmill.errors import printable
from tokenmill.inputs.errors import FatalInput
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.source_list import Source

SHOWN_BYTES = 80
MAX_ROLES = 16  # that are counted by name
MAX_RECOUNTED_BYTES = 16 << 20  # an error names the line of a record up to here, beyond it only the byte
INVALID_UTF8 = "invalid UTF-8"  # the one reason that --invalid skip tolerates
_CHATS = ("messages", "conversations")  # what their field is called as a rule
MALFORMED, FIELD_MISSING = "malformed", "field missing"
UNREADABLE = "unreadable file"
TOO_LONG = "longer than {limit} bytes (--max-record-bytes)"


class BadRecord(NamedTuple):
    """A record that gives no text. place: its first byte in the (decompressed) source, or its row.

    reason: the kind of fault, under which it is counted; detail: what exactly. data: its bytes, or the first of
    `length`. line: from 0, counted from the first line of the piece.
    """

    reason: str
    detail: str
    place: int
    data: bytes
    length: int
    line: int | None = None
    is_row: bool = False


class Intake:
    """Counts records, and treats the bad ones as the rules say.

    skipped: bad records by reason. unreadable: (source, error) of files that were left out from the damage on.
    messages: messages of chats by role. dropped: messages that the template leaves out, by role. replaced: U+FFFD that
    were put in. lines: (source, how many lines of it) where a source of lines goes on behind what was read.
    rows_before: counts the rows of the source before the piece, if the places of its records begin at 0.
    """

    def __init__(self, rules: IntakeRules) -> None:
        self.rules = rules
        self.rows_before: Callable[[], int] | None = None
        self.reset()

    def reset(self) -> None:
        """Count from nothing."""
        self.records = self.blank = self.replaced = 0
        self.skipped: dict[str, int] = {}
        self.unreadable: list[tuple[int, str]] = []
        self.messages: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self.lines: list[tuple[int, int]] = []

    def add_lines(self, source_index: int, lines: int) -> None:
        """So many lines, good, bad and blank, were read of a source that goes on."""
        self.lines.append((source_index, lines))

    def add_messages(self, roles: Iterable[str], dropped: Iterable[str]) -> None:
        """Count the messages of a chat."""
        for counts, own in ((self.messages, roles), (self.dropped, dropped)):
            for role in own:
                name = role if role in counts or len(counts) < MAX_ROLES else "other"
                counts[name] = counts.get(name, 0) + 1

    def bad(self, source_index: int, source: Source, record: BadRecord) -> None:
        """Count a bad record, and keep it under "quarantine"; FatalInput (exit 3) under "fail" or beyond max_errors."""
        tolerated = self.rules.invalid == "skip" and record.reason == INVALID_UTF8
        if self.rules.on_error == "fail" and not tolerated:
            raise FatalInput(_message(source, self._located(record)))
        self.skipped[record.reason] = self.skipped.get(record.reason, 0) + 1
        check_error_count(sum(self.skipped.values()) + len(self.unreadable), self.rules.max_errors)
        if self.rules.on_error == "quarantine":
            self.set_aside(source_index, self._located(record))

    def _located(self, record: BadRecord) -> BadRecord:
        if self.rows_before is None or not record.is_row:
            return record
        return record._replace(place=record.place + self.rows_before())

    def bad_file(self, source_index: int, source: Source, error: Exception) -> None:
        """Count a file that cannot be read, or not to its end; the documents before the damage stay.

        Raises the error under "fail" and FatalInput always.
        """
        fails = self.rules.on_error == "fail"
        if isinstance(error, FatalInput) or (fails and isinstance(error, OSError)):
            raise error
        if fails:
            join = " Or pass" if str(error).endswith(".") else ". Pass"
            raise type(error)(f"{error}{join} --on-error skip to skip bad files.")
        detail = printable(f"{source.shown}: {error.strerror}" if isinstance(error, OSError) else error)
        self.unreadable.append((source_index, detail))
        check_error_count(sum(self.skipped.values()) + len(self.unreadable), self.rules.max_errors)
        if self.rules.on_error == "quarantine":
            self.set_aside(source_index, BadRecord(UNREADABLE, detail, 0, b"", source.size_bytes))

    def set_aside(self, source_index: int, record: BadRecord) -> None:
        """Keep a bad record; here there is no place to."""


def _message(source: Source, record: BadRecord) -> str:
    if record.is_row:
        where = f"row {record.place}"
    elif record.line is None or (source.kind.is_divisible and record.place > MAX_RECOUNTED_BYTES):
        where = f"byte {record.place}"
    else:
        line = _line_number(source, record.place) if source.kind.is_divisible else record.line + 1
        where = f"line {line} (byte {record.place})"
    shown = record.data[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
    if shown:
        shown = f" (got {shown}{'...' if record.length > SHOWN_BYTES else ''})"
    return printable(f"{source.shown}: {where}: {record.detail}{shown}. {_way_out(record)}")


def _way_out(record: BadRecord) -> str:
    """What to do about a bad record: what is wrong with the first one is often wrong with all."""
    start = record.data[:SHOWN_BYTES].strip()
    if record.line == 0 and record.place <= len(codecs.BOM_UTF8):  # of the file, as its first byte is in it
        if start.startswith(b"["):
            return "Rename a JSON array to .json, or write one record per line with jq -c '.[]'."
        if start.startswith(b"{") and record.reason == MALFORMED and record.length < SHOWN_BYTES:
            return "Write one record per line, for example with jq -c '.'."
    way_out = "Fix the record, or pass --on-error skip to skip bad records."
    if record.reason == FIELD_MISSING:
        with suppress(ValueError, RecursionError):  # of a long record there is the beginning only
            names = list(json.loads(record.data))[:10]
            of_chats = "".join(
                f"Convert chats with --messages-field {name}. " for name in names if name in _CHATS
            )
            return f"Choose a field with --text-field (fields: {', '.join(names) or 'none'}). {of_chats}{way_out}"
    return way_out


def _line_number(source: Source, place: int) -> int:
    """The number of the line that begins at byte `place`, from 1; reads the file up to there."""
    number, read = 1, 0
    with source.open() as file, memoryview(buffer := bytearray(1 << 20)) as view:
        file.expect(0, place)
        while got := file.readinto_at(read, view[: place - read]):
            number += buffer.count(b"\n", 0, got)
            read += got
    return number


def check_error_count(count: int, max_errors: int | None) -> None:
    """Raise FatalInput (exit 3) if there are more bad records and files than allowed."""
    if max_errors is not None and count > max_errors:
        raise FatalInput(
            f"--max-errors: more than {max_errors} bad records or files. Raise it, or pass --on-error fail to see the "
            "first one."
        )
