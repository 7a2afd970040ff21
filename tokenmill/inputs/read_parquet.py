"""Parquet: a row a record, its text in one column; of the file only that column is read, row group by row group.

A row group belongs to the piece that its column begins in, so the row groups of a file are read by many workers and
nobody need open the file to plan. Pages are read with their check sums where the file has them. Without them damage
in Parquet cannot be told from text (more than half of all flipped bits stay unnoticed).

pyarrow is imported where the first piece is read, in a worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

from tokenmill.errors import printable
from tokenmill.inputs.arrow_texts import (
    BATCH_BYTES,
    array_documents,
    batch_of,
    inner_field,
    lengths_of,
    text_arrays,
    text_type,
)
from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import BadInput, repeated_column
from tokenmill.inputs.marked_records import MarkedRecords
from tokenmill.inputs.marked_rows import ROWS, marked_columns, marked_rows
from tokenmill.inputs.parquet_pages import ColumnChunks, dictionary_page_bytes
from tokenmill.inputs.rules import IntakeRules, MarkRules
from tokenmill.inputs.source_list import Piece, Source
from tokenmill.stores import RandomFile
from tokenmill.stores.arrow_file import ArrowFile
from tokenmill.stores.requests import PASSED_BYTES

# Rows that are read at a time, and then put together: one read after the other costs little beside so many rows.
READ_ROWS = 256
# Rows read at a time may come to so much by repeating values that are shorter.
REPEATED_BYTES = 32 << 20
# Where Arrow gives a number in a dictionary for each row: it makes the dictionary anew for each read.
DICTIONARY_ROWS = 1024
_READ_BYTES = 1 << 20


class _ParquetText:
    """The text column of an open Parquet file.

    chunks: where the pages of its columns lie.
    """

    def __init__(self, source: Source, file: RandomFile, text_path: tuple[str, ...]) -> None:
        import pyarrow
        import pyarrow.parquet

        self._arrow: Any = pyarrow
        self._source, self._bytes = source, file
        self.path = source.shown
        self._names = text_path
        self.column = ".".join(text_path)
        self._file: Any = self._opened()
        self._metadata = self._file.metadata
        groups, columns = self._metadata.num_row_groups, self._metadata.num_columns
        self.chunks: ColumnChunks = self._try(lambda: ColumnChunks(file, groups, columns))
        self._expected_stop = 0
        self._check_column()

    def _opened(self, **options: Any) -> Any:
        return self._try(
            lambda: self._arrow.parquet.ParquetFile(
                ArrowFile(self._bytes) if self._source.version else self._source.path,
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

    def _try(self, action: Any, where: str = "") -> Any:
        try:
            return action()
        except (self._arrow.ArrowException, OSError, ValueError) as error:
            raise _unreadable(error, f"{printable(self.path)}: {where}".removesuffix(": ")) from None

    def _check_column(self) -> None:
        """Raise BadInput unless the column is there and holds text."""
        kind = text_type(self._try(lambda: self._file.schema_arrow), self._names, self.path)
        self._is_dictionary = self._arrow.types.is_dictionary(kind)
        matches = [
            index
            for index in range(self._metadata.num_columns)
            if self._metadata.schema.column(index).path == self.column
        ]
        if len(matches) != 1:
            raise repeated_column(self.path, self.column, len(matches))
        self._index = matches[0]
        if self.chunks.is_encrypted(self._index):
            raise BadInput(f"{printable(self.path)}: column {self.column!r}: encrypted")

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
        starts = accumulate(
            (min(self.column_range(group)[0], size - 1) for group in range(self.group_count)), max
        )
        first_row = 0
        for group, start in enumerate(starts):
            if piece.start <= start < piece.stop:
                yield group, first_row
            first_row += self._metadata.row_group(group).num_rows

    def column_range(self, group: int) -> tuple[int, int]:
        """The bytes of the file [start, stop) that the column of a row group lies in."""
        return self.chunks.range_of(group, self._index)

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
        return text_arrays(self._columns(group))

    def _columns(self, group: int) -> Iterator[Any]:
        where = f"row group {group}, column {self.column!r}: "
        rows = self._rows_at_once(group)
        batches = self._try(
            lambda: self._file.iter_batches(
                batch_size=rows, row_groups=[group], columns=[self.column], use_threads=False
            ),
            where,
        )
        while (batch := self._try(lambda: next(batches, None), where)) is not None:
            yield inner_field(batch.column(0), self._names[1:])

    def _rows_at_once(self, group: int) -> int:
        """How many rows are read at a time.

        A value may stand in a file once for many rows, in a dictionary or as a beginning that others share. What rows
        come to is not known before they are read, so they are few where one of the repeated values may be long.
        """
        column_bytes = self.chunks.unpacked_bytes(group, self._index)
        repeated_bytes = dictionary_page_bytes(self._bytes, self.column_range(group)[0])
        if self._is_dictionary and repeated_bytes:
            return DICTIONARY_ROWS
        row_bytes = max(1, column_bytes // max(1, self._metadata.row_group(group).num_rows))
        rows = min(READ_ROWS, max(1, BATCH_BYTES // row_bytes))
        if rows * repeated_bytes > REPEATED_BYTES:
            repeated_bytes = self._longest_in_dictionary(group, repeated_bytes)
        if self.chunks.has_delta_byte_array(group, self._index):
            repeated_bytes = max(repeated_bytes, column_bytes)
        return int(min(rows, max(1, REPEATED_BYTES // max(1, repeated_bytes))))

    def _longest_in_dictionary(self, group: int, dictionary_bytes: int) -> int:
        """The bytes of the longest value of a row group's dictionary; dictionary_bytes where it can't be looked at."""
        with self._opened(read_dictionary=[self.column]) as file:
            batches = self._try(lambda: file.iter_batches(1, row_groups=[group], columns=[self.column]))
            array = inner_field(self._try(lambda: next(batches)).column(0), self._names[1:])
        if not isinstance(array, self._arrow.DictionaryArray):
            return dictionary_bytes
        lengths = lengths_of(array.dictionary)
        # Each stands in the page behind its length, of four bytes; a reader may have come to a part of them only.
        is_whole = int(lengths.sum()) + 4 * len(lengths) == dictionary_bytes
        return int(lengths.max()) if is_whole else dictionary_bytes


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the row groups that begin in the piece."""
    source = reading.source
    if reading.rules.marks is not None:
        yield from _marked_documents(reading, MarkedRecords(reading.intake), reading.rules.marks)
        return
    with _ParquetText(source, reading.file, reading.rules.text_path) as file:
        groups = list(file.groups(source.size_bytes, reading.piece))
        for number, (group, row) in enumerate(groups):
            file.expect([group for group, _ in groups[number:]])
            try:
                for array in file.arrays(group):
                    yield array_documents(reading, array, row)
                    yield None
                    row += len(array)
            except BadInput as error:  # the other row groups stay, whichever piece they are in
                reading.damaged(error)


def _marked_documents(reading: Reading, marked: MarkedRecords, marks: MarkRules) -> Iterator[Event]:
    """The documents of records with a loss mask, some rows at a time as Python objects; a row group
    belongs to the piece that it begins in."""
    import pyarrow
    import pyarrow.parquet

    source, piece, intake = reading.source, reading.piece, reading.intake
    shown = printable(source.shown)
    try:
        opened = ArrowFile(reading.file) if source.version else source.path
        with pyarrow.parquet.ParquetFile(opened, page_checksum_verification=True) as file:
            columns = marked_columns(file.schema_arrow.names, marks, source.shown)
            metadata = file.metadata
            chunks = ColumnChunks(reading.file, metadata.num_row_groups, metadata.num_columns)
            first_row = before = 0
            for group in range(metadata.num_row_groups):
                start, _ = chunks.range_of(group)
                start = before = max(before, min(start, source.size_bytes - 1))  # as for _ParquetText.groups
                if piece.start <= start < piece.stop:
                    row = first_row
                    try:
                        for batch in file.iter_batches(
                            ROWS, row_groups=[group], columns=columns, use_threads=False
                        ):
                            intake.records += batch.num_rows
                            rows = enumerate(batch.to_pylist(), row)
                            yield from marked_rows(reading, marked, rows, start - piece.start)
                            row += batch.num_rows
                    except (pyarrow.ArrowException, OSError, ValueError) as error:
                        reading.damaged(_unreadable(error, shown))
                first_row += metadata.row_group(group).num_rows
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise _unreadable(error, shown) from None


def _unreadable(error: Exception, where: str) -> BadInput:
    """The error of a library as BadInput with the file in it; an error of the system is raised unchanged."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error
    return BadInput(f"{where}: invalid Parquet data: {printable(' '.join(str(error).split()))[:300]}")


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
    with source.open() as opened, _ParquetText(source, opened, rules.text_path) as file:
        step = max(1, file.group_count // 64)
        for array in chain.from_iterable(map(file.arrays, range(0, file.group_count, step))):
            batch = batch_of(array)
            view = memoryview(batch.text)
            for start, stop in pairwise(batch.offsets.tolist()):
                taken = min(stop - start, sample_bytes)
                texts.append(bytes(view[start : start + taken]))
                rows += taken / (stop - start) if stop > start else 1
                text_bytes += taken
            if text_bytes >= sample_bytes:
                break
        return rows, file.row_count, texts
