"""Unpacks a large compressed source into blocks of whole records, which any number of workers can encode."""

from __future__ import annotations

from collections.abc import Iterator

from tokenmill.inputs.blocks import record_blocks, watched
from tokenmill.inputs.documents import Reading
from tokenmill.inputs.documents import UnpackedBlock as UnpackedBlock
from tokenmill.inputs.errors import BadInput


def pieces(reading: Reading, block_bytes: int) -> Iterator[tuple[memoryview, bool]]:
    """Yield (bytes of the decompressed source, whether they end a block), in order.

    block_bytes: a block ends at the first event None after so many bytes. The last piece may be empty.
    """
    separator = b"\n" if reading.source.kind.format == "jsonl" else reading.separator
    stop, is_open, whole = block_bytes, False, 0
    with reading.stream() as stream:
        blocks = record_blocks(stream, separator, reading.buffers.text, 0, reading.buffers.block_bytes)
        try:
            for block in watched(blocks, stream, reading.block_seen):
                is_open = not (block.final and reading.decoded_bytes >= stop)
                data = bytes(block.text) + separator * block.closed
                whole = block.start + len(data)
                yield memoryview(data), not is_open
                if not is_open:
                    stop = reading.decoded_bytes + block_bytes
        except BadInput:
            reading.decoded_bytes = whole
            raise
    if is_open:
        yield memoryview(b""), True
