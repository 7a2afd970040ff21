"""Rows of a table as records with a loss mask: which columns are read, and what becomes of the rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import no_column
from tokenmill.inputs.intake import BadRecord
from tokenmill.inputs.marked_records import MarkedBatch, MarkedRecords, RecordFault
from tokenmill.inputs.rules import MarkRules, pointer_path

ROWS = 256  # that are Python objects at a time


def marked_columns(names: Sequence[str], marks: MarkRules, path: str) -> list[str]:
    """The columns that records with a mask are made of, of those that there are; BadInput if one is missing."""
    columns = list(dict.fromkeys(pointer_path(name)[0] for name in marks.fields))
    if missing := [name for name in columns if name not in names]:
        options = "--messages-field" if marks.messages_field else "--prompt-field and --completion-field"
        raise no_column(path, missing[0], ", ".join(names[:10]), options)
    has_tools = marks.chat is not None and "tools" in names and "tools" not in columns
    return [*columns, "tools"] if has_tools else columns


def marked_rows(
    reading: Reading,
    marked: MarkedRecords,
    rows: Iterable[tuple[int, dict[str, Any]]],
    done_bytes: int = 0,
) -> Iterator[Event]:
    """The documents of some rows, each with its number; bad ones go to the intake. done_bytes: of the piece."""
    found = MarkedBatch()
    for number, row in rows:
        record = _without_nulls(row)
        try:
            found.add(marked.text_of(record), number)
        except RecordFault as fault:
            data = json.dumps(row, default=str).encode()
            bad = BadRecord(fault.reason, str(fault), number, data, len(data), is_row=True)
            reading.intake.bad(reading.source_index, reading.source, bad)
    for documents in found.documents(are_rows=True):
        yield reading.rows(documents.batch, documents.places, done_bytes)
    yield None


def _without_nulls(value: Any) -> Any:
    """A record as JSON Lines would have it: a column gives each object the fields of all, null where it has none."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value
