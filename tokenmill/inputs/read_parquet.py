"""Parquet: one document per row, read from the text column one row group at a time.

Row group i of n belongs to the piece with byte i * size // n, so workers read one file in parallel and planning opens
none. Pages are checked against their checksums if the file has them. A file without checksums can hold damage that
looks like text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from tokenmill.errors import printable
from tokenmill.inputs.arrow_texts import BATCH_BYTES, BatchReader, arrow_errors, owned
from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import BadInput
from tokenmill.stores.arrow_file import ArrowFile

# A text that repeats is stored once, so the average row says little. This limit bounds the memory in that case.
_MAX_ROWS = 2048
_READ_BYTES = 1 << 20


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the row groups that the piece owns."""
    import pyarrow.parquet

    where = printable(reading.source.shown)
    with (
        arrow_errors(f"{where}: invalid Parquet"),
        pyarrow.parquet.ParquetFile(
            ArrowFile(reading.file),
            buffer_size=_READ_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        ) as file,
    ):
        batches = BatchReader(reading, file.schema_arrow)
        groups = owned(file.metadata.num_row_groups, reading)
        row_counts = (file.metadata.row_group(group).num_rows for group in range(groups.stop))
        row_starts = list(accumulate(row_counts, initial=0))
        piece_bytes = reading.piece.stop - reading.piece.start
        first_row = row_starts[groups.start]
        for group in groups:
            if reading.source.version:
                reading.file.expect(*_span(file.metadata, group, batches.columns))
            row = row_starts[group]
            try:
                with arrow_errors(f"{where}: row group {group}: invalid Parquet"):
                    for batch in _batches(file, group, batches.columns):
                        reading.table_bytes = piece_bytes * (row - first_row) // (row_starts[-1] - first_row)
                        yield from batches.events(batch, row)
                        row += batch.num_rows
            except BadInput as error:  # other row groups, of this piece or another, are still read
                reading.damaged(error)


def _batches(file: Any, group: int, columns: list[str]) -> Iterator[Any]:
    """The record batches of a row group, each about BATCH_BYTES by the average size of its rows."""
    facts = file.metadata.row_group(group)
    row_bytes = max(1, facts.total_byte_size // max(1, facts.num_rows))
    rows = min(_MAX_ROWS, max(1, BATCH_BYTES // row_bytes))
    yield from file.iter_batches(batch_size=rows, row_groups=[group], columns=columns, use_threads=False)


def _span(metadata: Any, group: int, columns: Sequence[str]) -> tuple[int, int]:
    """The bytes of the columns of a row group, with those of the columns between them."""
    facts = metadata.row_group(group)
    chunks = [facts.column(index) for index in range(facts.num_columns)]
    paths = [(chunk.path_in_schema, chunk) for chunk in chunks]
    chunks = [chunk for path, chunk in paths if path in columns or path.split(".")[0] in columns]
    starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
    stops = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    return min(starts), max(stops)
