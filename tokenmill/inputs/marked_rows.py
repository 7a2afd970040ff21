"""Rows of a table as records with a loss mask: which columns are read, and the documents of the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import column_index
from tokenmill.inputs.marked_records import MarkedBatch, MarkedRecords, RecordFault
from tokenmill.inputs.rows import bad_row
from tokenmill.inputs.rules import MarkRules, pointer_path

ROWS = 256  # held as Python objects at a time


def marked_columns(names: Sequence[str], marks: MarkRules, path: str) -> list[str]:
    """Return the columns that records with a loss mask need. Raise BadInput if one is missing."""
    columns = list(dict.fromkeys(pointer_path(name)[0] for name in marks.fields))
    option = "--messages-field" if marks.messages_field else "--prompt-field and --completion-field"
    for column in columns:
        column_index(path, names, column, option)
    has_tools = marks.chat is not None and "tools" in names and "tools" not in columns
    return [*columns, "tools"] if has_tools else columns


def marked_rows(
    reading: Reading, marked: MarkedRecords, rows: Iterable[tuple[int, dict[str, Any]]], done_bytes: int = 0
) -> Iterator[Event]:
    """Yield the documents of (row number, row) pairs. Bad rows go to the intake."""
    batch = MarkedBatch()
    for number, row in rows:
        try:
            batch.add(marked.text_of(_without_nulls(row)), number)
        except RecordFault as fault:
            bad_row(reading, number, fault.reason, str(fault), json.dumps(row, default=str).encode())
    for documents in batch.documents(are_rows=True):
        yield reading.rows(documents.batch, documents.places, done_bytes)
    yield None


def _without_nulls(value: Any) -> Any:
    """Drop null fields. A column gives each object the fields of all objects, and null for those that it lacks."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value
