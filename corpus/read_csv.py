"""CSV and TSV: a row a record, its text in the column of the header that --text-field names.

RFC 4180: values may be quoted, a quoted one may hold the separator, line breaks and doubled quotes. Where a row begins
cannot be told from a place within the file, so it is read from its beginning, a row at a time. A row with more or fewer
values than the header is bad, and so is one with a quote that is not closed or stands within a value.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator

import numpy as np

from corpus import utf8
from corpus.batch import Batch
from corpus.blocks import ByteStream
from corpus.documents import Event, Reading
from corpus.errors import BadInput, printable
from corpus.intake import INVALID_UTF8, MALFORMED, BadRecord

BATCH_BYTES = 1 << 20
MAX_BATCH_ROWS = 8192
_BUFFER_BYTES = 1 << 20
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the file."""
    with reading.stream() as stream:
        rows = _Rows(reading, stream)
        texts: list[bytes] = []
        places: list[int] = []
        text_bytes = 0
        for number, text in rows.texts():
            texts.append(text)
            places.append(number)
            text_bytes += len(text)
            if text_bytes >= BATCH_BYTES or len(texts) == MAX_BATCH_ROWS:
                yield reading.rows(Batch.of(texts), np.array(places, np.uint64), stream.used_bytes)
                yield None
                texts, places, text_bytes = [], [], 0
        if texts:
            yield reading.rows(Batch.of(texts), np.array(places, np.uint64), stream.used_bytes)
        yield None


class _Rows:
    """The rows of a file: the texts of the good ones; the others go to the intake."""

    def __init__(self, reading: Reading, stream: ByteStream) -> None:
        self._reading = reading
        # A limit of the module's own for the longest value, of all readers in the process.
        csv.field_size_limit(max(csv.field_size_limit(), min(reading.rules.max_record_bytes, sys.maxsize)))
        # What is no UTF-8 goes through as surrogates, and is bytes again in the texts.
        raw = io.BufferedReader(_Raw(stream), _BUFFER_BYTES)
        self._lines = _Lines(io.TextIOWrapper(raw, "utf-8", "surrogateescape", newline=""), reading)
        self._rows = csv.reader(self._lines, delimiter=_DELIMITERS[reading.source.kind.format], strict=True)

    def texts(self) -> Iterator[tuple[int, bytes]]:
        """(number of the row, from 0 behind the header; its text)."""
        intake = self._reading.intake
        header = self._row()
        if header is None:
            return  # nothing at all
        if isinstance(header, csv.Error):
            raise BadInput(f"{self._where}: the header is no row of CSV: {header}")
        column = self._column(header)
        number = 0
        while (row := self._row()) is not None:
            if row == []:
                intake.blank += 1
                continue
            intake.records += 1
            if isinstance(row, csv.Error):
                self._bad(MALFORMED, f"it is no row of CSV: {row}", number, b"")
            elif len(row) != len(header):
                detail = f"it has {len(row)} values, the header {len(header)}"
                self._bad(MALFORMED, detail, number, row[0].encode("utf-8", "surrogateescape"))
            elif (text := self._valid(row[column], number)) is not None:
                yield number, text
            number += 1

    @property
    def _where(self) -> str:
        return printable(self._reading.source.shown)

    def _row(self) -> list[str] | csv.Error | None:
        """The next row, what is wrong with it, or None at the end of the file."""
        self._lines.begin_row()
        try:
            return next(self._rows, None)
        except csv.Error as error:
            return error

    def _column(self, header: list[str]) -> int:
        name = self._reading.rules.text_field
        if header.count(name) == 1:
            return header.index(name)
        if name in header:
            raise BadInput(f"{self._where}: has {header.count(name)} columns {name!r}; one is needed")
        raise BadInput(
            f"{self._where}: has no column {name!r}; --text-field can name one of: "
            f"{printable(', '.join(header[:20]))}"
        )

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
        detail = f"byte {place} of the text (0x{text[place]:02x}) is not valid UTF-8"
        self._bad(INVALID_UTF8, detail, number, text)
        return None

    def _bad(self, reason: str, detail: str, number: int, data: bytes) -> None:
        record = BadRecord(reason, detail, number, data, len(data), is_row=True)
        self._reading.intake.bad(self._reading.source_index, self._reading.source, record)


class _Lines:
    """The lines of a text with their ends; those of one row together are no longer than a record may be."""

    def __init__(self, text: io.TextIOWrapper, reading: Reading) -> None:
        self._text, self._reading = text, reading
        self._is_first = True
        self._row_bytes = 0

    def begin_row(self) -> None:
        """What follows is another row."""
        self._row_bytes = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        limit = self._reading.rules.max_record_bytes
        line = self._text.readline(limit + 1 - self._row_bytes)
        if not line:
            raise StopIteration
        self._row_bytes += len(line)
        if self._row_bytes > limit:
            raise BadInput(
                f"{printable(self._reading.source.shown)}: a row has more than {limit} characters "
                "(--max-record-bytes); is there a quote that is not closed?"
            )
        if self._is_first:
            self._is_first = False
            head = line[: utf8.HEAD_BYTES].encode("utf-8", "surrogateescape")
            if utf8.other_kind(head):
                raise utf8.invalid_text(head, 0, printable(self._reading.source.shown))
            line = line.removeprefix("\ufeff")
        return line


class _Raw(io.RawIOBase):
    """A stream as Python's io takes it."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._stream.readinto(memoryview(buffer).cast("B"))
