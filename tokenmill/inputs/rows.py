"""Rows of tables and files of archives: bad ones are reported, good ones become documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tokenmill.inputs import documents, utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.documents import DAMAGE, Event, Reading
from tokenmill.inputs.errors import column_index
from tokenmill.inputs.intake import INVALID_UTF8, BadRecord, RecordFault
from tokenmill.inputs.marked_records import MarkedRecords, MarkedText, marked_documents
from tokenmill.inputs.rules import MarkRules, pointer_path

if TYPE_CHECKING:
    from typing_extensions import Buffer

MARKED_ROWS = 256  # held as Python objects at a time

_Row = TypeVar("_Row")


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


def text_rows(reading: Reading, rows: Iterable[tuple[int, bytes]]) -> Iterator[Event]:
    """Yield the documents of (row number, text) pairs. If the file is damaged, the error comes after them."""
    for found in _batches(rows, documents.MAX_BATCH_ROWS, lambda row: len(row[1])):
        numbers = np.array([number for number, _ in found], np.uint64)
        yield reading.rows(Batch.of([text for _, text in found]), numbers)
        yield None


def marked_rows(
    reading: Reading, marked: MarkedRecords, rows: Iterable[tuple[int, dict[str, Any]]]
) -> Iterator[Event]:
    """Yield the documents of (row number, record) pairs, as `text_rows`."""
    for found in _batches(rows, MARKED_ROWS):
        texts: list[MarkedText] = []
        numbers: list[int] = []
        for number, row in found:
            try:
                texts.append(marked.text_of(_without_nulls(row)))
                numbers.append(number)
            except RecordFault as fault:
                bad_row(reading, number, fault.reason, str(fault), json.dumps(row, default=str).encode())
        for event in marked_documents(texts, numbers):
            yield reading.rows(event.batch, event.places)
        yield None


def _batches(
    rows: Iterable[_Row], max_rows: int, size_of: Callable[[_Row], int] = lambda row: 0
) -> Iterator[list[_Row]]:
    """Yield the rows as lists of at most `max_rows` and about BATCH_BYTES. Damage is raised after the last list."""
    batch: list[_Row] = []
    size = 0
    try:
        for row in rows:
            batch.append(row)
            size += size_of(row)
            if size >= documents.BATCH_BYTES or len(batch) == max_rows:
                yield batch
                batch, size = [], 0
    except DAMAGE:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def marked_columns(names: Sequence[str], marks: MarkRules, path: str) -> list[str]:
    """Return the columns that records with a loss mask need. Raise BadInput if one is missing."""
    columns = list(dict.fromkeys(pointer_path(name)[0] for name in marks.fields))
    for column in columns:
        column_index(path, names, column, marks.option)
    has_tools = marks.chat is not None and "tools" in names and "tools" not in columns
    return [*columns, "tools"] if has_tools else columns


def _without_nulls(value: Any) -> Any:
    """Drop null fields. A column gives each object the fields of all objects, and null for those that it lacks."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value
