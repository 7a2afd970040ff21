"""CSV and TSV: a row a record, its text in the column of the header that --text-field names.

RFC 4180: values may be quoted, a quoted one may hold the separator, line breaks and doubled quotes. Where a row begins
cannot be told from a place within the file, so it is read from its beginning, a row at a time. A row with more or fewer
values than the header is bad, and so is one whose quoted value is not closed or goes on behind its last quote.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterator

from tokenmill.errors import printable
from tokenmill.inputs import utf8
from tokenmill.inputs.blocks import ByteStream
from tokenmill.inputs.documents import DAMAGE, Event, Reading
from tokenmill.inputs.errors import BadInput, no_column, repeated_column
from tokenmill.inputs.intake import INVALID_UTF8, MALFORMED, TOO_LONG, BadRecord
from tokenmill.inputs.marked_records import MarkedRecords
from tokenmill.inputs.marked_rows import ROWS, marked_columns, marked_rows

_BUFFER_BYTES = 1 << 20
_Record = tuple[int, dict[str, str]]
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_OTHER_DELIMITERS = ";\t|,"  # of files that are CSV by their name alone


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the file."""
    with reading.stream() as stream:
        rows = _Rows(reading, stream)
        if reading.rules.marks is not None:
            marked = MarkedRecords(reading.intake)
            for some in _batches(rows.records()):
                yield from marked_rows(reading, marked, some, stream.used_bytes)
            return
        yield from reading.texts(rows.texts(), stream)


def _batches(records: Iterator[_Record]) -> Iterator[list[_Record]]:
    """ROWS records at a time; those before damage come before it."""
    some: list[_Record] = []
    try:
        for record in records:
            some.append(record)
            if len(some) == ROWS:
                yield some
                some = []
    except DAMAGE:
        yield some
        raise
    yield some


class _Rows:
    """The rows of a file: the texts of the good ones; the others go to the intake."""

    def __init__(self, reading: Reading, stream: ByteStream) -> None:
        self._reading = reading
        # The limit of a value is the module's own, of all readers in the process.
        csv.field_size_limit(min(reading.rules.max_record_bytes, sys.maxsize))
        # What is no UTF-8 goes through as surrogates, and is bytes again in the texts.
        raw = io.BufferedReader(_Raw(stream, reading), _BUFFER_BYTES)
        lines = io.TextIOWrapper(raw, "utf-8", "surrogateescape", newline="")
        self._rows = csv.reader(lines, delimiter=_DELIMITERS[reading.source.kind.format], strict=True)

    def texts(self) -> Iterator[tuple[int, bytes]]:
        """(number of the row, from 0 behind the header; its text)."""
        if header := self._header():
            column = self._column(header)
            for number, row in self._good_rows(header):
                if (text := self._valid(row[column], number)) is not None:
                    yield number, text

    def records(self) -> Iterator[tuple[int, dict[str, str]]]:
        """(number of the row; what it has in the columns that records with a loss mask are made of)."""
        marks = self._reading.rules.marks
        assert marks is not None
        if header := self._header():
            columns = {name: self._place(name, header) for name in marked_columns(header, marks, self._where)}
            for number, row in self._good_rows(header):
                values = {}
                for name, column in columns.items():
                    if (text := self._valid(row[column], number)) is None:
                        break
                    values[name] = text.decode()
                else:
                    yield number, values

    def _header(self) -> list[str] | None:
        """The first row that is not blank; None if there is nothing at all."""
        while (header := self._row()) == []:
            self._reading.intake.blank += 1
        if isinstance(header, csv.Error):
            raise BadInput(f"{self._where}: invalid CSV header: {printable(header)}")
        return header

    def _good_rows(self, header: list[str]) -> Iterator[tuple[int, list[str]]]:
        """(number of the row; as many values as the header has)."""
        intake, number = self._reading.intake, 0
        while (row := self._row()) is not None:
            if row == []:
                intake.blank += 1
                continue
            intake.records += 1
            if isinstance(row, csv.Error):
                self._bad(MALFORMED, f"invalid CSV: {row}", number, b"")
            elif len(row) != len(header):
                detail = f"expected {len(header)} values, as in the header, found {len(row)}"
                self._bad(MALFORMED, detail, number, row[0].encode("utf-8", "surrogateescape"))
            else:
                yield number, row
            number += 1

    @property
    def _where(self) -> str:
        return printable(self._reading.source.shown)

    def _row(self) -> list[str] | csv.Error | None:
        """The next row, what is wrong with it, or None at the end of the file."""
        try:
            return next(self._rows, None)
        except csv.Error as error:
            if "field limit" in str(error):
                raise _too_long(self._reading) from None
            return error

    def _column(self, header: list[str]) -> int:
        name = self._reading.rules.text_field
        if name in header:
            return self._place(name, header)
        other = (
            next((mark for mark in _OTHER_DELIMITERS if mark in header[0]), None)
            if len(header) == 1
            else None
        )
        hint = f" Separate columns with commas (.csv) or tabs (.tsv) instead of {other!r}." if other else ""
        error = no_column(self._reading.source.shown, name, ", ".join(header[:20]))
        raise BadInput(f"{error}{hint}")

    def _place(self, name: str, header: list[str]) -> int:
        if header.count(name) > 1:
            raise repeated_column(self._reading.source.shown, name, header.count(name))
        return header.index(name)

    def _valid(self, value: str, number: int) -> bytes | None:
        """The text as UTF-8; None if it is not, and not to be mended."""
        if value.isascii():
            return value.encode()
        text = value.encode("utf-8", "surrogateescape")
        try:
            return value.encode()
        except UnicodeEncodeError:
            pass
        if self._reading.rules.invalid == "replace":
            mended, replaced = utf8.replace_invalid(text)
            self._reading.intake.replaced += replaced
            return bytes(mended)
        place = utf8.first_invalid(text)
        detail = utf8.invalid_byte(place, text[place], " of the text")
        self._bad(INVALID_UTF8, detail, number, text)
        return None

    def _bad(self, reason: str, detail: str, number: int, data: bytes) -> None:
        record = BadRecord(reason, detail, number, data, len(data), is_row=True)
        self._reading.intake.bad(self._reading.source_index, self._reading.source, record)


class _Raw(io.RawIOBase):
    """A stream as Python's io takes it, without the UTF-8 mark; BadInput for a line that is too long to be a record."""

    def __init__(self, stream: ByteStream, reading: Reading) -> None:
        self._stream, self._reading = stream, reading
        self._is_first = True
        self._line_bytes = 0  # of the line that the last bytes lie in

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        view = memoryview(buffer).cast("B")
        got = self._stream.readinto(view)
        if self._is_first:
            self._is_first = False
            while 0 < got < utf8.HEAD_BYTES and (more := self._stream.readinto(view[got:])):
                got += more
            head = bytes(view[: min(got, utf8.HEAD_BYTES)])
            if utf8.other_kind(head):
                raise utf8.invalid_text(head, 0, self._reading.source.shown)
            if head.startswith(codecs.BOM_UTF8):
                got -= 3
                view[:got] = bytes(view[3 : got + 3])
        line_end = bytes(view[:got]).rfind(b"\n")
        self._line_bytes = self._line_bytes + got if line_end < 0 else got - line_end - 1
        if self._line_bytes > self._reading.rules.max_record_bytes:
            raise _too_long(self._reading)
        return got


def _too_long(reading: Reading) -> BadInput:
    limit = TOO_LONG.format(limit=reading.rules.max_record_bytes)
    return BadInput(f"{printable(reading.source.shown)}: a row is {limit}. Check for an unclosed quote.")
