"""Parquet and Arrow IPC: one document per row, read one row group or record batch at a time.

Group i of n belongs to the piece with byte i * size // n, so workers read one file in parallel and planning opens none.
An Arrow stream, as Hugging Face datasets writes it, is read from its start by one task; the first bytes tell files from
streams. A stream needs no end mark, so one that ends between two batches looks complete.

Parquet pages are checked against their checksums if the file has them. Arrow has no checksums. A file without checksums
can hold damage that looks like text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from tokenmill.errors import printable
from tokenmill.inputs.arrow_texts import BATCH_BYTES, BatchReader, arrow_errors
from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import BadInput
from tokenmill.inputs.kinds import FORMATS
from tokenmill.stores.files import ArrowFile, read_at

_FILE_MAGIC = b"ARROW1"
_PADDING_BYTES = 64
# A text that repeats is stored once, so the average row says little. This limit bounds the memory in that case.
_MAX_ROWS = 2048
_READ_BYTES = 1 << 20


class _Groups(NamedTuple):
    """The row groups of a Parquet file, or the record batches of an Arrow file.

    rows: returns the number of rows of a group, 0 if it is damaged.
    batches: yields (record batch, share of the group up to its end).
    """

    name: str
    group_count: int
    rows: Callable[[int], int]
    batches: Callable[[int], Iterator[tuple[Any, float]]]


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the groups that the piece owns."""
    form = reading.source.kind.format
    with arrow_errors(f"{printable(reading.source.shown)}: invalid {FORMATS[form].name}"):
        if form == "parquet":
            yield from _parquet(reading)
        elif read_at(reading.file, 0, len(_FILE_MAGIC)) == _FILE_MAGIC:
            yield from _arrow_file(reading)
        elif reading.piece.start == 0:
            yield from _arrow_stream(reading)


def _parquet(reading: Reading) -> Iterator[Event]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(
        ArrowFile(reading.file), buffer_size=_READ_BYTES, pre_buffer=False, page_checksum_verification=True
    ) as file:
        texts, metadata = BatchReader(reading, file.schema_arrow), file.metadata

        def batches(group: int) -> Iterator[tuple[Any, float]]:
            """The batches of a row group, each about BATCH_BYTES by the average size of its rows."""
            facts = metadata.row_group(group)
            if reading.source.version:
                reading.file.expect(*_span(facts, texts.columns))
            row_bytes = max(1, facts.total_byte_size // max(1, facts.num_rows))
            rows, done = min(_MAX_ROWS, max(1, BATCH_BYTES // row_bytes)), 0
            for batch in file.iter_batches(
                rows, row_groups=[group], columns=texts.columns, use_threads=False
            ):
                done += batch.num_rows
                yield batch, done / facts.num_rows

        def rows(group: int) -> int:
            return int(metadata.row_group(group).num_rows)

        yield from _owned(reading, _Groups("row group", metadata.num_row_groups, rows, batches), texts)


def _span(group: Any, columns: Sequence[str]) -> tuple[int, int]:
    """The smallest span of bytes that holds the columns of a row group."""
    chunks = [group.column(index) for index in range(group.num_columns)]
    paths = [(chunk.path_in_schema, chunk) for chunk in chunks]
    chunks = [chunk for path, chunk in paths if path in columns or path.split(".")[0] in columns]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    stops = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    return min(starts), max(stops)


def _arrow_file(reading: Reading) -> Iterator[Event]:
    import pyarrow.ipc

    schema = pyarrow.ipc.open_file(ArrowFile(reading.file)).schema
    texts = BatchReader(reading, schema)
    options = pyarrow.ipc.IpcReadOptions(
        included_fields=[schema.get_field_index(name) for name in texts.columns], use_threads=False
    )
    file = pyarrow.ipc.open_file(ArrowFile(reading.file), options=options)

    def batches(index: int) -> Iterator[tuple[Any, float]]:
        yield file.get_batch(index), 1.0

    @cache
    def rows(index: int) -> int:
        try:
            return int(file.get_batch(index).num_rows)
        except (pyarrow.ArrowException, OSError, ValueError):
            return 0

    yield from _owned(reading, _Groups("record batch", file.num_record_batches, rows, batches), texts)


def _owned(reading: Reading, groups: _Groups, texts: BatchReader) -> Iterator[Event]:
    """Yield the documents of the groups of the piece: each i with start <= i * size // count < stop.

    With 4 of them in 100 bytes, the piece [25, 60) owns 1 and 2. Row numbers count from the first row of a group.
    """
    piece, size, count = reading.piece, max(1, reading.source.size_bytes), groups.group_count
    own = range(-(-piece.start * count // size), -(-piece.stop * count // size))
    where, form = printable(reading.source.shown), FORMATS[reading.source.kind.format].name
    try:
        for number, group in enumerate(own):
            before = range(group)
            reading.intake.rows_before = cache(lambda before=before: sum(map(groups.rows, before)))
            row = 0
            try:
                with arrow_errors(f"{where}: {groups.name} {group}: invalid {form}"):
                    for batch, share in groups.batches(group):
                        reading.table_bytes = int((number + share) * (piece.stop - piece.start) / len(own))
                        yield from texts.events(batch, row)
                        row += batch.num_rows
            except BadInput as error:  # other groups, of this piece or another, are still read
                reading.damaged(error)
    finally:
        reading.intake.rows_before = None


def _arrow_stream(reading: Reading) -> Iterator[Event]:
    import pyarrow.ipc

    file, row = ArrowFile(reading.file), 0
    stream = pyarrow.ipc.open_stream(file, options=pyarrow.ipc.IpcReadOptions(use_threads=False))
    texts = BatchReader(reading, stream.schema)
    for batch in stream:
        reading.table_bytes = file.tell()
        yield from texts.events(batch, row)
        row += batch.num_rows
    rest = read_at(reading.file, file.tell(), _PADDING_BYTES)
    if len(rest) == _PADDING_BYTES or any(rest):
        raise BadInput(
            f"{printable(reading.source.shown)}: byte {file.tell()}: extra bytes after the end of the data. "
            "Split concatenated files."
        )
