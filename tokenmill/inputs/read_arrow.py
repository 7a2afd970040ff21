"""Arrow IPC, as a file (Feather) or a stream: a row a record, its text in one column, read record batch by batch.

A record batch belongs to the piece that its message begins in. Both forms are messages one behind the other, each with
its length in front (https://arrow.apache.org/docs/format/Columnar.html), so the batches of a piece are found by the
headers alone; the footer of a file says that it is whole, and where its schema ends if that has no length in front, as
polars 2 writes it. A stream may end without a mark, so one that was cut between two messages looks like a whole one. Of
a dictionary, only what comes before the first record batch is read. Memory is that of a record batch.
Arrow has no check sums: damage within a text cannot be told from text.

pyarrow is imported where the first piece is read, in a worker.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tokenmill.errors import naming, printable
from tokenmill.inputs.arrow_texts import array_documents, inner_field, text_arrays, text_type
from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import BadInput, changed_while_read
from tokenmill.inputs.marked_records import MarkedRecords
from tokenmill.inputs.marked_rows import ROWS, marked_columns, marked_rows
from tokenmill.inputs.rules import MarkRules
from tokenmill.stores import RandomFile

_PAST_END = "message extends past the end of the file"
_FILE_MARK = b"ARROW1\0\0"
_CONTINUED = 0xFFFFFFFF
_FEATHER_1 = int.from_bytes(b"FEA1", "little")
# How a flatbuffer begins, and no length of one: polars 2 writes none in front of a file's schema.
_NO_LENGTH = 4
_SCHEMA, _DICTIONARY, _RECORDS = 1, 2, 3
_PADDING_BYTES = 64  # what is written at a time is filled up to no more than this
_MOST_METADATA_BYTES = 256 << 20


class _Message(NamedTuple):
    """Bytes [start, stop) of the file; kind: of what is in it; rows: of a record batch; missing: what belongs in
    front of it."""

    start: int
    stop: int
    kind: int
    rows: int
    missing: bytes = b""


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the record batches that begin in the piece."""
    import pyarrow
    import pyarrow.compute

    path, size, piece = reading.source.shown, reading.source.size_bytes, reading.piece
    names, marks = reading.rules.text_path, reading.rules.marks
    marked = None if marks is None else MarkedRecords(reading.intake)
    columns: list[str] = []  # of records with a loss mask
    file = reading.file
    schema: Any = None
    head, row = b"", 0
    has_dictionaries = False
    for message in _messages(file, path, size):
        if message.kind != _RECORDS:
            has_dictionaries |= message.kind == _DICTIONARY
            if message.kind == _DICTIONARY and row:
                raise _late_dictionary(path, message.start)
            head += message.missing + _read(file, path, message.start, message.stop)
            if message.kind == _SCHEMA:
                schema = _tried(path, 0, partial(pyarrow.ipc.read_schema, pyarrow.py_buffer(head)))
                # Names of columns may be no UTF-8.
                if marks is None:
                    _tried(path, 0, partial(text_type, schema, names, path))
                else:
                    columns = _tried(path, 0, partial(_marked_columns, schema, marks, path))
            continue
        if message.start >= piece.stop:
            break
        if not has_dictionaries and any(pyarrow.types.is_dictionary(kind) for kind in schema.types):
            raise _late_dictionary(path, message.start)
        if message.start >= piece.start:
            try:
                data = _read(file, path, message.start, message.stop)
                # Where there are dictionaries, only a stream knows them.
                batch = _tried(
                    path,
                    message.start,
                    partial(
                        _batch,
                        head + data if has_dictionaries else data,
                        None if has_dictionaries else schema,
                        message.rows,
                    ),
                )
                del data
                done_bytes, first_row = message.stop - piece.start, row
                if marked is None:
                    column = _tried(path, message.start, partial(_column, batch, names))
                    del batch
                    for array in text_arrays([column]):
                        yield array_documents(reading, array, first_row, done_bytes)
                        yield None
                        first_row += len(array)
                else:
                    for start in range(0, batch.num_rows, ROWS):
                        rows = _tried(path, message.start, partial(_rows, batch.slice(start, ROWS), columns))
                        reading.intake.records += len(rows)
                        yield from marked_rows(
                            reading, marked, enumerate(rows, first_row + start), done_bytes
                        )
            except BadInput as error:  # the other record batches stay, whichever piece they are in
                reading.damaged(error)
        row += message.rows


def _messages(file: RandomFile, path: str, size: int) -> Iterator[_Message]:
    """The messages of the file in order, by their headers."""
    is_file = _read(file, path, 0, min(size, len(_FILE_MARK))) == _FILE_MARK
    place = len(_FILE_MARK) if is_file else 0
    is_first, stop_of_messages = True, size
    while place + 8 <= stop_of_messages:
        mark, length = struct.unpack("<II", _read(file, path, place, place + 8))
        begin = place + 8
        if mark != _CONTINUED:  # before version 0.15 the length came first
            length, begin = mark, place + 4
        if is_first and place and length == _NO_LENGTH:
            stop, stop_of_messages = _schema_and_footer(file, path, size)
            yield _Message(place, stop, _SCHEMA, 0, struct.pack("<II", _CONTINUED, stop - place))
            is_first, place = False, stop
            continue
        if is_first and mark == _FEATHER_1:
            raise _damaged(
                path, 0, "Feather version 1. Convert it to version 2 with pyarrow.feather.write_feather."
            )
        if length == 0:
            place = begin
            break
        if length > min(_MOST_METADATA_BYTES, size - begin):
            raise _damaged(path, place, _PAST_END)
        data = _read(file, path, begin, begin + length)
        try:
            kind, body_bytes, rows = _header(data)
            is_big_endian = kind == _SCHEMA and _is_big_endian(data)
        except (struct.error, IndexError):
            raise _damaged(path, place, "bad message header") from None
        if is_big_endian:
            raise _damaged(path, place, "big-endian numbers. Read it with pyarrow.ipc and write it again.")
        if is_first and kind != _SCHEMA:
            raise _damaged(path, place, "no schema at the start")
        stop = begin + length + body_bytes
        if body_bytes < 0 or rows < 0 or stop > size:
            raise _damaged(path, place, _PAST_END)
        yield _Message(place, stop, kind, rows)
        is_first, place = False, stop
    if is_first:
        raise _damaged(path, 0, "no Arrow messages")
    end = _footer(file, path, size)[0] if is_file else size
    if not place <= end < place + _PADDING_BYTES or any(_read(file, path, place, end)):
        raise _damaged(path, place, "extra bytes after the end of the data. Split concatenated files.")


def _header(data: bytes) -> tuple[int, int, int]:
    """(kind, bytes of the body, rows) of a message's flatbuffer; IndexError or struct.error for what is none."""
    (message,) = struct.unpack_from("<I", data)
    field = partial(_field, data)
    kind_at, header_at, body_at = field(message, 1), field(message, 2), field(message, 3)
    kind = data[kind_at] if kind_at else 0
    body_bytes = struct.unpack_from("<q", data, body_at)[0] if body_at else 0
    rows = 0
    if kind == _RECORDS and header_at:
        records = header_at + struct.unpack_from("<I", data, header_at)[0]
        rows_at = field(records, 0)
        rows = struct.unpack_from("<q", data, rows_at)[0] if rows_at else 0
    return kind, body_bytes, rows


def _is_big_endian(schema: bytes) -> bool:
    """Whether a schema's flatbuffer says that numbers have their highest byte first."""
    (message,) = struct.unpack_from("<I", schema)
    header_at = _field(schema, message, 2)
    table = header_at + struct.unpack_from("<I", schema, header_at)[0]
    endianness_at = _field(schema, table, 0)
    return bool(endianness_at and struct.unpack_from("<h", schema, endianness_at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table lies, 0 if it is not there."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0:
        raise IndexError
    (vtable_bytes,) = struct.unpack_from("<H", data, vtable)
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", data, vtable + at)[0] if at < vtable_bytes else 0
    return table + offset if offset else 0


def _footer(file: RandomFile, path: str, size: int) -> tuple[int, int]:
    """[start, stop) of a file's footer; BadInput if the file was cut off."""
    tail = struct.calcsize("<i6s")
    length, mark = struct.unpack("<i6s", _read(file, path, max(0, size - tail), size))
    start = size - tail - length
    is_whole = mark == _FILE_MARK[:6] and len(_FILE_MARK) < start < size - tail
    if not is_whole or length > _MOST_METADATA_BYTES:
        raise _damaged(path, max(0, size - tail), "no footer. Get the complete file.")
    return start, size - tail


def _schema_and_footer(file: RandomFile, path: str, size: int) -> tuple[int, int]:
    """(where the schema of a file ends, by the file's footer; where that begins)."""
    start, stop = _footer(file, path, size)
    data = _read(file, path, start, stop)
    try:
        (footer,) = struct.unpack_from("<I", data)
        found = [start]
        for number in (
            2,
            3,
        ):  # blocks of dictionaries and of record batches, 24 bytes each, their place first
            if at := _field(data, footer, number):
                blocks = at + struct.unpack_from("<I", data, at)[0]
                (count,) = struct.unpack_from("<I", data, blocks)
                found += (
                    struct.unpack_from("<q", data, blocks + 4 + 24 * block)[0] for block in range(count)
                )
    except (struct.error, IndexError):
        raise _damaged(path, start, "bad footer") from None
    if min(found) <= len(_FILE_MARK):
        raise _damaged(path, start, "the footer points into the schema")
    return min(found), start


def _read(file: RandomFile, path: str, start: int, stop: int) -> bytes:
    """Bytes [start, stop) of the file."""
    data = bytearray(stop - start)
    place = 0
    with memoryview(data) as view:
        while place < len(data):
            with naming(f"{path} at byte {start + place}"):
                got = file.readinto_at(start + place, view[place:])
            if not got:
                raise changed_while_read(path, f"ends at byte {start + place}")
            place += got
    return bytes(data)


def _batch(data: bytes, schema: Any, rows: int) -> Any:
    """The record batch whose message `data` is, or the last of a stream if there is no schema; checked."""
    import pyarrow

    if schema is None:
        batch = pyarrow.ipc.open_stream(data).read_next_batch()
    else:
        batch = pyarrow.ipc.read_record_batch(pyarrow.py_buffer(data), schema)
    batch.validate()
    if batch.num_rows != rows:
        raise ValueError("the number of rows differs from the header")
    return batch


def _marked_columns(schema: Any, marks: MarkRules, path: str) -> list[str]:
    return marked_columns(schema.names, marks, path)


def _rows(batch: Any, names: list[str]) -> list[dict[str, Any]]:
    """The rows of a record batch as objects, of these columns."""
    kept = batch.select(names)
    kept.validate(full=True)
    return list(kept.to_pylist())


def _column(batch: Any, names: tuple[str, ...]) -> Any:
    """The texts of a record batch; checked."""
    import pyarrow

    column = inner_field(batch.column(batch.schema.get_field_index(names[0])), names[1:])
    is_dictionary = isinstance(column, pyarrow.DictionaryArray)
    if is_dictionary:
        column.indices.validate(full=True)
        bounds = pyarrow.compute.min_max(column.indices).as_py()
        if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(column.dictionary):
            raise ValueError("dictionary index out of range")
    values = column.dictionary if is_dictionary else column
    # As bytes: whether they are UTF-8 is looked for later, row by row.
    as_bytes = {"string": pyarrow.binary(), "large_string": pyarrow.large_binary()}.get(str(values.type))
    (values if as_bytes is None else values.cast(as_bytes)).validate(full=True)
    return column


def _tried(path: str, place: int, action: Callable[[], Any]) -> Any:
    import pyarrow

    try:
        return action()
    except (pyarrow.ArrowException, OSError, ValueError, StopIteration) as error:
        raise _damaged(path, place, " ".join(str(error).split())) from None


def _late_dictionary(path: str, place: int) -> BadInput:
    return BadInput(
        f"{printable(path)}: byte {place}: dictionaries after the first record batch are not supported. Write the "
        "column as plain strings."
    )


def _damaged(path: str, place: int, detail: str) -> BadInput:
    return BadInput(f"{printable(path)}: byte {place}: invalid Arrow data: {printable(detail)[:300]}")
