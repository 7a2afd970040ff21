"""Arrow IPC: one document per row, read one record batch at a time. The first bytes tell files from streams.

Record batch i of n in a file (Feather) belongs to the piece with byte i * size // n. A stream, as Hugging Face datasets
writes it, is read from its start by one task. Arrow has no checksums, so a file can hold damage that looks like text.
A stream needs no end mark, so one that ends between two batches looks complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tokenmill.errors import printable
from tokenmill.inputs.arrow_texts import BatchReader, arrow_errors, owned
from tokenmill.inputs.documents import Event, Reading
from tokenmill.inputs.errors import BadInput
from tokenmill.stores.arrow_file import ArrowFile
from tokenmill.stores.files import read_at

_FILE_MAGIC = b"ARROW1"
_PADDING_BYTES = 64


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the record batches that the piece owns."""
    where = printable(reading.source.shown)
    with arrow_errors(f"{where}: invalid Arrow"):
        if read_at(reading.file, 0, len(_FILE_MAGIC)) == _FILE_MAGIC:
            yield from _file_documents(reading, where)
        elif reading.piece.start == 0:
            yield from _stream_documents(reading, where)


def _file_documents(reading: Reading, where: str) -> Iterator[Event]:
    import pyarrow.ipc

    schema = pyarrow.ipc.open_file(ArrowFile(reading.file)).schema
    batches = BatchReader(reading, schema)
    options = pyarrow.ipc.IpcReadOptions(
        included_fields=[schema.get_field_index(name) for name in batches.columns], use_threads=False
    )
    file = pyarrow.ipc.open_file(ArrowFile(reading.file), options=options)
    own = owned(file.num_record_batches, reading)

    @cache
    def rows_before() -> int:
        return sum(file.get_batch(index).num_rows for index in range(own.start))

    row = 0  # from the first row of the piece
    reading.intake.rows_before = rows_before
    try:
        for number, index in enumerate(own):
            reading.table_bytes = number * (reading.piece.stop - reading.piece.start) // len(own)
            try:
                with arrow_errors(f"{where}: record batch {index}: invalid Arrow"):
                    batch = file.get_batch(index)
                    yield from batches.events(batch, row)
                    row += batch.num_rows
            except BadInput as error:  # other batches, of this piece or another, are still read
                reading.damaged(error)
    finally:
        reading.intake.rows_before = None


def _stream_documents(reading: Reading, where: str) -> Iterator[Event]:
    import pyarrow.ipc

    file, row = ArrowFile(reading.file), 0
    stream = pyarrow.ipc.open_stream(file, options=pyarrow.ipc.IpcReadOptions(use_threads=False))
    batches = BatchReader(reading, stream.schema)
    for batch in stream:
        reading.table_bytes = file.tell()
        yield from batches.events(batch, row)
        row += batch.num_rows
    rest = read_at(reading.file, file.tell(), _PADDING_BYTES)
    if len(rest) == _PADDING_BYTES or any(rest):
        raise BadInput(
            f"{where}: byte {file.tell()}: extra bytes after the end of the data. Split concatenated files."
        )
