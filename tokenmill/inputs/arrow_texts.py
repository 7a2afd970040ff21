"""Record batches of Arrow as documents, for Parquet and Arrow files.

A batch gives the texts of one column, or records with a loss mask made of several columns. pyarrow is imported when a
worker opens its first file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tokenmill.errors import TokenmillError, printable
from tokenmill.inputs import utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.documents import MAX_BATCH_ROWS, Documents, Event, Reading
from tokenmill.inputs.errors import BadInput, InvalidText, column_index
from tokenmill.inputs.marked_records import MarkedRecords
from tokenmill.inputs.rows import MARKED_ROWS, bad_row, marked_columns, marked_rows, valid_row

BATCH_BYTES = 4 << 20
_TEXT_TYPES = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}


@contextmanager
def arrow_errors(where: str) -> Iterator[None]:
    """Raise errors of pyarrow as BadInput. where: beginning of the message, from the file on."""
    import pyarrow

    try:
        yield
    except TokenmillError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BadInput(f"{where} data: {printable(' '.join(str(error).split()))[:300]}") from None


class BatchReader:
    """Turns record batches of one source into events. columns: names of the columns to read.

    Raise BadInput if a column is missing or is not text.
    """

    def __init__(self, reading: Reading, schema: Any) -> None:
        self._reading, path = reading, reading.source.shown
        self._text_path, marks = reading.rules.text_path, reading.rules.marks
        self._marked = None if marks is None else MarkedRecords(reading.intake)
        if marks is None:
            _check_text(schema, self._text_path, path)
            self.columns = [self._text_path[0]]
        else:
            self.columns = marked_columns(schema.names, marks, path)

    def events(self, batch: Any, first_row: int) -> Iterator[Event]:
        """Yield the documents of a record batch. first_row: number of its first row."""
        if self._marked is not None:
            yield from marked_rows(self._reading, self._marked, self._records(batch, first_row))
            return
        import pyarrow.compute

        batch.validate()
        array = batch.column(batch.schema.get_field_index(self._text_path[0]))
        for name in self._text_path[1:]:
            array = pyarrow.compute.struct_field(array, name)
        for part in _slices(_as_bytes(array)):
            yield self._documents(part, first_row)
            yield None
            first_row += len(part)

    def _records(self, batch: Any, first_row: int) -> Iterator[tuple[int, Any]]:
        batch = batch.select(self.columns)
        batch.validate(full=True)
        for start in range(0, batch.num_rows, MARKED_ROWS):
            for row in batch.slice(start, MARKED_ROWS).to_pylist():
                self._reading.intake.records += 1
                yield first_row, row
                first_row += 1

    def _documents(self, array: Any, first_row: int) -> Documents:
        """The texts of an array. Valid texts are not copied unless another text of the array is bad."""
        reading, batch = self._reading, _batch_of(array)
        reading.intake.records += len(array)
        if not array.null_count and _is_valid(batch):
            return reading.rows(batch, np.arange(first_row, first_row + len(array), dtype=np.uint64))
        texts: list[bytes] = []
        kept: list[int] = []
        for row, text in enumerate(array.to_pylist(), first_row):
            if text is None:
                bad_row(reading, row, "not a text", "null instead of text")
            elif (valid := valid_row(reading, row, text)) is not None:
                texts.append(valid)
                kept.append(row)
        return reading.rows(Batch.of(texts), np.array(kept, np.uint64))


def _check_text(schema: Any, text_path: tuple[str, ...], path: str) -> None:
    """Raise BadInput unless the path leads to a text column, or to a text field of a struct column."""
    import pyarrow

    fields: list[Any] = list(schema)
    kind: Any = None
    for name in text_path:
        kind = fields[column_index(path, [field.name for field in fields], name)].type
        fields = list(kind) if pyarrow.types.is_struct(kind) else []
    values = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if str(values) not in _TEXT_TYPES:
        column = ".".join(text_path)
        raise BadInput(
            f"{printable(path)}: the column {column!r} has type {values}, not text. Choose another with --text-field."
        )


def _as_bytes(array: Any) -> Any:
    """Strings as large_binary, or a dictionary of these. pyarrow's error if offsets or indices are bad.

    pyarrow would reject a whole array for one invalid UTF-8 text, so it checks strings as bytes.
    """
    import pyarrow

    if isinstance(array, pyarrow.DictionaryArray):
        return pyarrow.DictionaryArray.from_arrays(array.indices, _as_bytes(array.dictionary))
    if str(array.type).endswith("_view"):
        array.validate(full=True)
        array = array.cast(
            pyarrow.large_string() if array.type == pyarrow.string_view() else pyarrow.large_binary()
        )
    array = array.cast(pyarrow.large_binary())
    array.validate(full=True)
    return array


def _slices(array: Any) -> Iterator[Any]:
    """Cut an array into slices of BATCH_BYTES of text, or one longer text, and MAX_BATCH_ROWS."""
    import pyarrow.compute

    is_dictionary = isinstance(array, pyarrow.DictionaryArray)
    lengths = pyarrow.compute.binary_length(array.dictionary if is_dictionary else array)
    if is_dictionary:
        lengths = lengths.take(array.indices)
    ends = np.cumsum(lengths.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    start = before = 0
    while start < len(array):
        stop = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        stop = min(max(stop, start + 1), start + MAX_BATCH_ROWS, len(array))
        part = array.slice(start, stop - start)
        yield part.dictionary_decode() if is_dictionary else part
        start, before = stop, int(ends[stop - 1])


def _batch_of(array: Any) -> Batch:
    """The memory of a binary array as a batch, without a copy."""
    if not len(array):
        return Batch.of([])
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(array) + 1, array.offset * 8)
    first, last = int(offsets[0]), int(offsets[-1])
    data = memoryview(b"") if data_buffer is None else memoryview(data_buffer).cast("B")[first:last]
    return Batch(data, offsets.astype(np.uint64) - np.uint64(first))


def _is_valid(batch: Batch) -> bool:
    try:
        utf8.check_rows(batch.text, batch.offsets)
    except InvalidText:
        return False
    return True
