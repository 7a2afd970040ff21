"""CSV and TSV (RFC 4180): one document per row, read from the column that --text-field names.

A quoted value can hold separators, line breaks and doubled quotes, so a row is found only by reading from the start. A
row is bad if its number of values differs from the header's, or if a quoted value does not end as it should.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence

from tokenmill.errors import printable
from tokenmill.inputs import utf8
from tokenmill.inputs.blocks import StreamFile
from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import BadInput, column_index
from tokenmill.inputs.intake import MALFORMED, TOO_LONG
from tokenmill.inputs.marked_records import MarkedRecords
from tokenmill.inputs.rows import bad_row, marked_columns, marked_rows, text_rows, valid_row

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_BUFFER_BYTES = 1 << 20


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the file."""
    table = _Table(reading)
    if reading.rules.marks is None:
        yield from text_rows(reading, table.texts())
    else:
        yield from marked_rows(reading, MarkedRecords(reading.intake), table.records())


class _Table:
    """The rows of a file. Bad rows go to the intake."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._path = reading, reading.source.shown
        self._limit = reading.rules.max_record_bytes
        csv.field_size_limit(min(self._limit, sys.maxsize))  # of the whole process
        file = io.BufferedReader(StreamFile(reading.stream()), _BUFFER_BYTES)
        reading.refuse_other_kind(file.peek(utf8.HEAD_BYTES))
        # Invalid UTF-8 is decoded to surrogates, which become the same bytes again.
        self._text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
        delimiter = _DELIMITERS[reading.source.kind.format]
        self._rows = csv.reader(self._lines(), delimiter=delimiter, strict=True)

    def texts(self) -> Iterator[tuple[int, bytes]]:
        """(row number, text) of the good rows. Row 0 follows the header."""
        if header := self._header():
            for number, (text,) in self._good_rows(header, [self._text_column(header)]):
                yield number, text

    def records(self) -> Iterator[tuple[int, dict[str, str]]]:
        """(row number, columns of a record with a loss mask) of the good rows."""
        marks = self._reading.rules.marks
        assert marks is not None
        if header := self._header():
            names = marked_columns(header, marks, self._path)
            for number, values in self._good_rows(header, list(map(header.index, names))):
                yield number, dict(zip(names, (value.decode() for value in values), strict=True))

    def _lines(self) -> Iterator[str]:
        while line := self._text.readline(self._limit):
            if len(line) == self._limit:
                raise self._too_long()
            yield line

    def _header(self) -> list[str] | None:
        """The first row that is not blank, or None."""
        while (header := self._row()) == []:
            self._reading.intake.blank += 1
        if isinstance(header, csv.Error):
            raise BadInput(f"{printable(self._path)}: invalid CSV header: {printable(header)}")
        return header

    def _good_rows(self, header: list[str], columns: Sequence[int]) -> Iterator[tuple[int, list[bytes]]]:
        """(row number, values of the columns) of the rows with as many values as the header, all valid UTF-8."""
        reading, number = self._reading, -1
        while (row := self._row()) is not None:
            if row == []:
                reading.intake.blank += 1
                continue
            reading.intake.records += 1
            number += 1
            if isinstance(row, csv.Error):
                bad_row(reading, number, MALFORMED, f"invalid CSV: {row}")
            elif len(row) != len(header):
                detail = f"expected {len(header)} values, as in the header, found {len(row)}"
                bad_row(reading, number, MALFORMED, detail, _encoded(row[0]))
            else:
                values = []
                for column in columns:
                    if (value := valid_row(reading, number, _encoded(row[column]))) is None:
                        break
                    values.append(value)
                else:
                    yield number, values

    def _row(self) -> list[str] | csv.Error | None:
        """The next row, its error, or None at the end."""
        try:
            return next(self._rows, None)
        except csv.Error as error:
            if "field limit" in str(error):
                raise self._too_long() from None
            return error

    def _text_column(self, header: list[str]) -> int:
        try:
            return column_index(self._path, header, self._reading.rules.text_field)
        except BadInput as error:
            delimiter = next((mark for mark in ";\t|," if mark in header[0]), None)
            if len(header) > 1 or delimiter is None:
                raise
            raise BadInput(
                f"{error} Separate columns with commas (.csv) or tabs (.tsv) instead of {delimiter!r}."
            ) from None

    def _too_long(self) -> BadInput:
        limit = TOO_LONG.format(limit=self._limit)
        return BadInput(f"{printable(self._path)}: a row is {limit}. Check for an unclosed quote.")


def _encoded(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")
