"""Plain text: documents between separators, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from tokenmill.inputs.blocks import Block, pieces_of
from tokenmill.inputs.documents import Event, LongText, Reading, Text

# The text and its token IDs stay in the 2 MiB cache of a core. Smaller blocks would not pay for the call.
TEXT_BLOCK_BYTES = 1 << 20


def documents(reading: Reading) -> Iterator[Event]:
    """Yield the documents of the piece."""
    blocks = text_blocks(reading)
    for block in blocks:
        if block.is_piece:
            with closing(pieces_of(block, blocks)) as pieces:
                yield LongText(pieces, block.start)
        else:
            yield Text(block.text, block.start)
        yield None


def text_blocks(reading: Reading) -> Iterator[Block]:
    """Return the text of the piece as blocks of whole documents."""
    block_bytes = min(TEXT_BLOCK_BYTES, reading.buffers.block_bytes)
    return reading.blocks(reading.separator, block_bytes, is_divided=reading.source.kind.is_divisible)
