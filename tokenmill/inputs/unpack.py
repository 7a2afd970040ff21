"""Unpacks a large compressed source into blocks of whole records, which any number of workers can encode.

A block is a part of the decompressed source. It ends where a shard would end if one task read the whole source, so
the shards are the same either way. `Reading(..., block=UnpackedBlock(...))` reads a block; offsets in its errors are
those in the decompressed source. A JSON array is unpacked as JSON Lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from tokenmill.inputs.documents import Reading
from tokenmill.inputs.documents import UnpackedBlock as UnpackedBlock
from tokenmill.inputs.read_jsonl import line_blocks
from tokenmill.inputs.read_text import text_blocks


def pieces(reading: Reading, block_bytes: int) -> Iterator[tuple[memoryview, bool]]:
    """Yield (bytes of the decompressed source, whether they end a block), in order.

    reading: of a compressed source of text or JSON Lines.
    block_bytes: a block ends at the first event None after so many bytes. The last piece may be empty.

    Damage raises BadInput after the bytes before it. `reading.decoded_bytes` then says where the last whole record
    ends; bytes after that offset belong to an incomplete record and to no block.
    """
    reading.check_content()
    stop = block_bytes
    is_open = False
    for block in line_blocks(reading) if reading.source.kind.format == "jsonl" else text_blocks(reading):
        is_open = not (block.is_last and reading.decoded_bytes >= stop)
        yield block.data, not is_open
        if not is_open:
            stop = reading.decoded_bytes + block_bytes
    if is_open:
        yield memoryview(b""), True
