"""Texts in Arrow arrays: which column they are in, cut and joined by how many bytes they are, and as documents.

Cuts depend on the texts and not on the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenmill.errors import printable
from tokenmill.inputs import _core, utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.documents import Documents, Reading
from tokenmill.inputs.errors import BadInput, no_column, repeated_column
from tokenmill.inputs.intake import BadRecord

# A batch of rows is about so much text by the file's own account.
BATCH_BYTES = 4 << 20
MAX_BATCH_ROWS = 8192
JOINED_BYTES = 1 << 20
_TEXT_TYPES = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
# Some writers note that they keep strings as views; what holds offsets is the text end to end.
_LONG_TYPES = {"string_view": "large_string", "binary_view": "large_binary"}


def text_type(schema: Any, names: tuple[str, ...], path: str) -> Any:
    """The type of the column of texts, of dictionaries too; names: of the column, and of fields of structs within.

    BadInput if it is not there or holds no text.
    """
    import pyarrow

    column = ".".join(names)
    fields = list(schema)
    shown = ", ".join(sorted({field.name for field in fields})[:20])
    kind: Any = None
    for name in names:
        kinds = [field.type for field in fields if field.name == name]
        if not kinds:
            raise no_column(path, column, shown)
        if len(kinds) > 1:
            raise repeated_column(path, column, len(kinds))
        kind = kinds[0]
        fields = list(kind) if pyarrow.types.is_struct(kind) else []
    values = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if str(values) not in _TEXT_TYPES:
        raise BadInput(
            f"{printable(path)}: the column {column!r} has type {values}, not text. Choose another with --text-field."
        )
    return kind


def inner_field(array: Any, names: tuple[str, ...]) -> Any:
    """The field of structs within structs that the names lead to."""
    import pyarrow.compute

    for name in names:
        array = pyarrow.compute.struct_field(array, name)
    return array


def text_arrays(columns: Iterable[Any]) -> Iterator[Any]:
    """The texts of the arrays in order, a few MiB at a time, as strings or bytes with offsets."""
    for array in joined(_pieces(columns), JOINED_BYTES, MAX_BATCH_ROWS):
        long_type = _LONG_TYPES.get(str(array.type))
        yield array if long_type is None else array.cast(long_type)


def _pieces(columns: Iterable[Any]) -> Iterator[Any]:
    """No piece of more than BATCH_BYTES and a value."""
    import pyarrow

    for array in columns:
        for piece in cut_by_bytes(array, BATCH_BYTES):
            yield piece.dictionary_decode() if isinstance(piece, pyarrow.DictionaryArray) else piece


def cut_by_bytes(array: Any, most_bytes: int) -> Iterator[Any]:
    """The array in slices of at most so many bytes of text, or of one value that is longer.

    array: of texts, or of a dictionary of texts, whose slices are cut by what they come to when decoded.
    """
    import pyarrow

    if isinstance(array, pyarrow.DictionaryArray):
        indices = array.indices.fill_null(0).to_numpy()
        lengths = (
            lengths_of(array.dictionary)[indices] if len(array.dictionary) else np.zeros(len(array), np.int64)
        )
    elif array.nbytes <= most_bytes:
        yield array
        return
    else:
        lengths = lengths_of(array)
    ends = np.cumsum(lengths)
    start, before = 0, 0
    while start < len(array):
        stop = max(start + 1, int(np.searchsorted(ends, before + most_bytes, side="right")))
        yield array.slice(start, stop - start)
        start, before = stop, int(ends[stop - 1])


def lengths_of(array: Any) -> NDArray[np.int64]:
    """int64[values]: the bytes of each text of the array, 0 for null."""
    import pyarrow.compute

    kind = str(array.type)
    if kind.endswith("_view"):
        array = array.cast(f"large_{kind.removesuffix('_view')}")
    lengths = pyarrow.compute.binary_length(array).fill_null(0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)


def joined(arrays: Iterable[Any], least_bytes: int, most_rows: int) -> Iterator[Any]:
    """The values of the arrays in order, in arrays of so many bytes or rows; what is not joined is not copied."""
    parts: list[Any] = []
    part_bytes = rows = 0
    for array in arrays:
        if parts and rows + len(array) > most_rows:
            yield _one(parts)
            parts, part_bytes, rows = [], 0, 0
        parts.append(array)
        part_bytes += array.nbytes
        rows += len(array)
        if part_bytes >= least_bytes or rows >= most_rows:
            yield _one(parts)
            parts, part_bytes, rows = [], 0, 0
    if parts:
        yield _one(parts)


def _one(parts: list[Any]) -> Any:
    import pyarrow

    return parts[0] if len(parts) == 1 else pyarrow.concat_arrays(parts)


def array_documents(reading: Reading, array: Any, first_row: int, done_bytes: int = 0) -> Documents:
    """The texts of an array of strings or bytes, without a copy if all are good; bad rows go to the intake.

    done_bytes: of the piece.
    """
    intake = reading.intake
    intake.records += len(array)
    batch = batch_of(array)
    count = len(array)
    data = memoryview(batch.text)
    rows = np.arange(first_row, first_row + count, dtype=np.uint64)
    bad: dict[int, BadRecord | bytes] = {}
    if array.null_count:
        for index in np.flatnonzero(~_valid(array)).tolist():
            bad[index] = BadRecord(
                "not a text", "null instead of text", first_row + index, b"", 0, is_row=True
            )
    if not _rows_are_utf8(batch):
        _look_for_bad_rows(reading, batch, first_row, bad)
    if not bad:
        return reading.rows(batch, rows, done_bytes)
    texts: list[Any] = []
    kept: list[int] = []
    bounds = batch.offsets.tolist()
    for index in range(count):
        found = bad.get(index)
        if isinstance(found, BadRecord):
            intake.bad(reading.source_index, reading.source, found)
            continue
        texts.append(data[bounds[index] : bounds[index + 1]] if found is None else found)
        kept.append(index)
    return reading.rows(Batch.of(texts), rows[kept], done_bytes)


def batch_of(array: Any) -> Batch:
    _, offset_buffer, data_buffer = array.buffers()
    dtype = np.dtype(np.int64 if str(array.type).startswith("large_") else np.int32)
    if not len(array):
        return Batch.of([])
    offsets = np.frombuffer(offset_buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)
    begin, end = int(offsets[0]), int(offsets[-1])
    data = memoryview(data_buffer)[begin:end] if data_buffer is not None else memoryview(b"")
    return Batch(data, offsets.astype(np.uint64) - np.uint64(begin))


def _valid(array: Any) -> NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _rows_are_utf8(batch: Batch) -> bool:
    """Whether each row by itself is valid: all together are, and none begins within a character."""
    if _core.validate_utf8(batch.text) >= 0:
        return False
    data = np.frombuffer(memoryview(batch.text), dtype=np.uint8)
    starts = batch.offsets[:-1]
    starts = starts[starts < len(data)]
    return not bool(np.any((data[starts] & 0xC0) == 0x80))


def _look_for_bad_rows(
    reading: Reading, batch: Batch, first_row: int, bad: dict[int, BadRecord | bytes]
) -> None:
    """Add to `bad` a record for each row that is not valid UTF-8, or its mended text."""
    view = memoryview(batch.text).cast("B")  # Arrow's buffers are of signed bytes
    bounds = batch.offsets.tolist()
    for index in range(len(batch)):
        text = view[bounds[index] : bounds[index + 1]]
        place = _core.validate_utf8(text)
        if place < 0 or index in bad:
            continue
        if reading.rules.invalid == "replace":
            mended, replaced = utf8.replace_invalid(text)
            reading.intake.replaced += replaced
            bad[index] = bytes(mended)
        else:
            detail = utf8.invalid_byte(place, text[place], " of the text")
            bad[index] = BadRecord(
                "invalid UTF-8", detail, first_row + index, bytes(text), len(text), is_row=True
            )
