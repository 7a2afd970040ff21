"""Parquet: a row a record, its text in one column; of the file only that column is read, row group by row group.

A row group belongs to the piece that its column begins in, so the row groups of a file are read by many workers and
nobody need open the file to plan. Pages are read with their check sums where the file has them. Without them damage
in Parquet cannot be told from text (more than half of all flipped bits stay unnoticed).

pyarrow is imported where the first piece is read, in a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus import _core, utf8
from corpus.batch import Batch
from corpus.errors import BadInput, printable
from corpus.intake import BadRecord, Intake
from corpus.parquet_pieces import cut_by_bytes, dictionary_page_bytes, joined, lengths_of
from corpus.rules import IntakeRules
from corpus.source_list import Piece, Source
from stores.arrow_file import ArrowFile
from stores.requests import PASSED_BYTES

# A batch of rows is about so much text by the file's own account.
BATCH_BYTES = 4 << 20
_TEXT_TYPES = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}
# Some writers note that they keep strings as views; what holds offsets is the text end to end.
_LONG_TYPES = {"string_view": "large_string", "binary_view": "large_binary"}
MAX_BATCH_ROWS = 8192
# Rows that are read at a time, and then put together: one read after the other costs little beside so many rows.
READ_ROWS = 256
JOINED_BYTES = 1 << 20
# Rows read at a time may come to so much by repeating values that are shorter.
REPEATED_BYTES = 32 << 20
# Where Arrow gives a number in a dictionary for each row: it makes the dictionary anew for each read.
DICTIONARY_ROWS = 1024
_READ_BYTES = 1 << 20


class _ParquetText:
    """The text column of an open Parquet file.

    footer_bytes: how long the metadata at the end of the file are, with their length and the mark behind them.
    """

    def __init__(self, source: Source, text_path: tuple[str, ...]) -> None:
        import pyarrow
        import pyarrow.parquet

        self._arrow: Any = pyarrow
        self._source = source
        self.path = source.shown
        self._names = text_path
        self.column = ".".join(text_path)
        self._bytes = source.open()
        self._file: Any = self._opened()
        self._metadata = self._file.metadata
        footer = bytearray(4)
        self._bytes.readinto_at(self._bytes.size - 8, memoryview(footer))
        self.footer_bytes = int.from_bytes(footer, "little") + 8
        self._expected_stop = 0
        self._check_column()
        self._check_encryption()

    def _opened(self, **options: Any) -> Any:
        return self._try(
            lambda: self._arrow.parquet.ParquetFile(
                self._source.path if not self._source.version else ArrowFile(self._bytes),
                buffer_size=_READ_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
                **options,
            )
        )

    def __enter__(self) -> _ParquetText:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._bytes.close()

    def _try(self, action: Any, where: str = "") -> Any:
        try:
            return action()
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            detail = " ".join(str(error).split())
            raise BadInput(
                f"{printable(self.path)}: {where}not readable as Parquet: {printable(detail)[:300]}"
            ) from None

    def _check_column(self) -> None:
        """Raise BadInput unless the column is there and holds text."""
        schema = self._try(lambda: self._file.schema_arrow)
        fields = {field.name: field for field in schema}
        shown = ", ".join(sorted(fields)[:20])
        kind = None
        for name in self._names:
            if name not in fields:
                raise BadInput(
                    f"{printable(self.path)}: has no column {self.column!r}; --text-field can name one of: "
                    f"{printable(shown)}"
                )
            kind = fields[name].type
            types = self._arrow.types
            fields = {field.name: field for field in kind} if types.is_struct(kind) else {}
        assert kind is not None
        self._is_dictionary = types.is_dictionary(kind)
        if self._is_dictionary:
            kind = kind.value_type
        if str(kind) not in _TEXT_TYPES:
            raise BadInput(
                f"{printable(self.path)}: the column {self.column!r} holds {kind}, not text; name another with "
                f"--text-field"
            )
        matches = [
            index
            for index in range(self._metadata.num_columns)
            if self._metadata.schema.column(index).path == self.column
        ]
        if len(matches) != 1:
            raise BadInput(
                f"{printable(self.path)}: has {len(matches)} columns {self.column!r}; one is needed"
            )
        self._index = matches[0]

    def _check_encryption(self) -> None:
        """Raise BadInput if the column is encrypted though the footer is not: Arrow ends the process where such a
        column's metadata are looked at, but a reader raises.

        Behind a footer that can be read in such a file stands its signature, so it is longer than what it says.
        """
        if self.group_count and self.footer_bytes != self._metadata.serialized_size + 8:
            where = f"row group 0, column {self.column!r}: "
            self._try(
                lambda: next(
                    self._file.iter_batches(1, row_groups=[0], columns=[self.column], use_threads=False), None
                ),
                where,
            )

    @property
    def group_count(self) -> int:
        """How many row groups the file has."""
        return int(self._metadata.num_row_groups)

    @property
    def row_count(self) -> int:
        """How many rows the file has."""
        return int(self._metadata.num_rows)

    def groups(self, size: int, piece: Piece) -> Iterator[tuple[int, int]]:
        """(row group, number of its first row) of those whose column begins in the piece, in order.

        A row group counts as beginning no earlier than the one before it, so the order of the documents is that of
        the file, however it is cut; and within the file, whatever it says.
        """
        groups = [self._metadata.row_group(index) for index in range(self._metadata.num_row_groups)]
        starts = accumulate((min(self._start(group), size - 1) for group in groups), max)
        first_row = 0
        for index, (group, start) in enumerate(zip(groups, starts, strict=True)):
            if piece.start <= start < piece.stop:
                yield index, first_row
            first_row += group.num_rows

    def _start(self, group: Any) -> int:
        column = group.column(self._index)
        places = [column.data_page_offset]
        if column.has_dictionary_page and column.dictionary_page_offset is not None:
            places.append(column.dictionary_page_offset)
        return max(0, int(min(places)))

    def column_range(self, group: int) -> tuple[int, int]:
        """The bytes of the file [start, stop) that the column of a row group lies in."""
        column = self._metadata.row_group(group).column(self._index)
        start = self._start(self._metadata.row_group(group))
        return start, start + max(0, int(column.total_compressed_size))

    def expect(self, groups: Sequence[int]) -> None:
        """The column of these row groups will be read in order: they are fetched together as far as little else lies
        between them."""
        start, stop = self.column_range(groups[0])
        if stop <= self._expected_stop:
            return
        for group in groups[1:]:
            following, end = self.column_range(group)
            if not 0 <= following - stop <= PASSED_BYTES:
                break
            stop = end
        self._bytes.expect(start, stop)
        self._expected_stop = stop

    def arrays(self, group: int) -> Iterator[Any]:
        """The column's values, a few MiB at a time."""
        for array in joined(self._pieces(group), JOINED_BYTES, MAX_BATCH_ROWS):
            long_type = _LONG_TYPES.get(str(array.type))
            yield array if long_type is None else array.cast(long_type)

    def _pieces(self, group: int) -> Iterator[Any]:
        """The column's values as they are read, no piece of more than BATCH_BYTES and a value."""
        where = f"row group {group}, column {self.column!r}: "
        rows = self._rows_at_once(group)
        batches = self._try(
            lambda: self._file.iter_batches(
                batch_size=rows, row_groups=[group], columns=[self.column], use_threads=False
            ),
            where,
        )
        while (batch := self._try(lambda: next(batches, None), where)) is not None:
            array = batch.column(0)
            for name in self._names[1:]:
                array = self._inner(array, name)
            for piece in cut_by_bytes(array, BATCH_BYTES):
                if isinstance(piece, self._arrow.DictionaryArray):
                    piece = piece.dictionary_decode()
                yield piece

    def _rows_at_once(self, group: int) -> int:
        """How many rows are read at a time.

        A value may stand in a file once for many rows, in a dictionary or as a beginning that others share. What rows
        come to is not known before they are read, so they are few where one of the repeated values may be long.
        """
        column = self._metadata.row_group(group).column(self._index)
        repeated_bytes = dictionary_page_bytes(self._bytes, self._start(self._metadata.row_group(group)))
        if self._is_dictionary and repeated_bytes:
            return DICTIONARY_ROWS
        row_bytes = max(1, column.total_uncompressed_size // max(1, self._metadata.row_group(group).num_rows))
        rows = min(READ_ROWS, max(1, BATCH_BYTES // row_bytes))
        if rows * repeated_bytes > REPEATED_BYTES:
            repeated_bytes = self._longest_in_dictionary(group, repeated_bytes)
        if "DELTA_BYTE_ARRAY" in column.encodings:
            repeated_bytes = max(repeated_bytes, column.total_uncompressed_size)
        return int(min(rows, max(1, REPEATED_BYTES // max(1, repeated_bytes))))

    def _longest_in_dictionary(self, group: int, dictionary_bytes: int) -> int:
        """The bytes of the longest value of a row group's dictionary; dictionary_bytes where it can't be looked at."""
        with self._opened(read_dictionary=[self.column]) as file:
            batches = self._try(lambda: file.iter_batches(1, row_groups=[group], columns=[self.column]))
            array = self._try(lambda: next(batches)).column(0)
        for name in self._names[1:]:
            array = self._inner(array, name)
        if not isinstance(array, self._arrow.DictionaryArray):
            return dictionary_bytes
        lengths = lengths_of(array.dictionary)
        # Each stands in the page behind its length, of four bytes; a reader may have come to a part of them only.
        is_whole = int(lengths.sum()) + 4 * len(lengths) == dictionary_bytes
        return int(lengths.max()) if is_whole else dictionary_bytes

    def _inner(self, array: Any, name: str) -> Any:
        import pyarrow.compute

        return pyarrow.compute.struct_field(array, name)


def parquet_batches(
    source_index: int, source: Source, piece: Piece, intake: Intake, need: Callable[[int, int], None]
) -> Iterator[tuple[Batch, NDArray[np.uint64]]]:
    """(documents, the row of each in the file) of the row groups that begin in the piece; bad rows go to `intake`.

    need(start, stop): which bytes of the file were read for them.
    """
    with _ParquetText(source, intake.rules.text_path) as file:
        need(source.size_bytes - file.footer_bytes, source.size_bytes)
        groups = list(file.groups(source.size_bytes, piece))
        for number, (group, row) in enumerate(groups):
            file.expect([group for group, _ in groups[number:]])
            need(*file.column_range(group))
            for array in file.arrays(group):
                intake.records += len(array)
                yield _documents(array, row, source_index, source, intake)
                row += len(array)


def text_sample(source: Source, rules: IntakeRules, sample_bytes: int) -> tuple[float, int, list[bytes]]:
    """(rows, rows of the whole file, their texts) of row groups all over the file; texts may be invalid UTF-8.

    Of a row longer than the sample its beginning is taken, and the row counts as that part of one.
    """
    try:
        return _text_sample(source, rules, sample_bytes)
    finally:
        import pyarrow

        pyarrow.default_memory_pool().release_unused()  # the workers need theirs soon


def _text_sample(source: Source, rules: IntakeRules, sample_bytes: int) -> tuple[float, int, list[bytes]]:
    rows, texts, text_bytes = 0.0, [], 0
    with _ParquetText(source, rules.text_path) as file:
        step = max(1, file.group_count // 64)
        for array in chain.from_iterable(map(file.arrays, range(0, file.group_count, step))):
            batch = _batch_of(array)
            view = memoryview(batch.text)
            for start, stop in pairwise(batch.offsets.tolist()):
                taken = min(stop - start, sample_bytes)
                texts.append(bytes(view[start : start + taken]))
                rows += taken / (stop - start) if stop > start else 1
                text_bytes += taken
            if text_bytes >= sample_bytes:
                break
        return rows, file.row_count, texts


def _documents(
    array: Any, first_row: int, source_index: int, source: Source, intake: Intake
) -> tuple[Batch, NDArray[np.uint64]]:
    """The texts of an Arrow array of strings or bytes; without a copy if all are good."""
    batch = _batch_of(array)
    count = len(array)
    data = memoryview(batch.text)
    rows = np.arange(first_row, first_row + count, dtype=np.uint64)
    bad: dict[int, BadRecord | bytes] = {}
    if array.null_count:
        for index in np.flatnonzero(~_valid(array)).tolist():
            bad[index] = BadRecord("not a text", "the text is null", first_row + index, b"", 0, is_row=True)
    if not _rows_are_utf8(batch):
        _look_for_bad_rows(batch, first_row, intake, bad)
    if not bad:
        return batch, rows
    texts: list[Any] = []
    kept: list[int] = []
    bounds = batch.offsets.tolist()
    for index in range(count):
        found = bad.get(index)
        if isinstance(found, BadRecord):
            intake.bad(source_index, source, found)
            continue
        texts.append(data[bounds[index] : bounds[index + 1]] if found is None else found)
        kept.append(index)
    return Batch.of(texts), rows[kept]


def _batch_of(array: Any) -> Batch:
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
    batch: Batch, first_row: int, intake: Intake, bad: dict[int, BadRecord | bytes]
) -> None:
    """Add to `bad` a record for each row that is not valid UTF-8, or its mended text."""
    view = memoryview(batch.text).cast("B")  # Arrow's buffers are of signed bytes
    bounds = batch.offsets.tolist()
    for index in range(len(batch)):
        text = view[bounds[index] : bounds[index + 1]]
        place = _core.validate_utf8(text)
        if place < 0 or index in bad:
            continue
        if intake.rules.invalid == "replace":
            mended, replaced = utf8.replace_invalid(text)
            intake.replaced += replaced
            bad[index] = bytes(mended)
        else:
            detail = f"byte {place} of the text (0x{text[place]:02x}) is not valid UTF-8"
            bad[index] = BadRecord(
                "invalid UTF-8", detail, first_row + index, bytes(text), len(text), is_row=True
            )
