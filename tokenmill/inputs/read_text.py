"""Text: documents between separators. Of a plain file a piece is read by itself, what is compressed as a stream."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING

from tokenmill.inputs import utf8
from tokenmill.inputs.blocks import pieces_of, record_blocks, watched
from tokenmill.inputs.documents import Event, LongText, Reading, Text
from tokenmill.inputs.stretches import STRETCH_BYTES, Stretch, own_stretches

if TYPE_CHECKING:
    from typing_extensions import Buffer


def documents(reading: Reading) -> Iterator[Event]:
    """The documents of the piece."""
    if reading.source.kind.is_divisible:
        yield from _stretches(reading)
        return
    buffers = reading.buffers
    with reading.stream() as stream:
        start = reading.block_start
        blocks = record_blocks(stream, reading.separator, buffers.text, start, buffers.block_bytes)
        blocks = watched(blocks, stream, reading.block_seen)
        for block in blocks:
            if block.start == 0:
                reading.refuse_other_kind(block.text)
            if block.is_piece:
                yield LongText(pieces_of(block, blocks), block.start)
            else:
                yield Text(block.text, block.start)
            yield None


def _stretches(reading: Reading) -> Iterator[Event]:
    window, separator, piece = reading.window, reading.separator, reading.piece
    stop = piece.stop

    def seen(stretch: Stretch) -> memoryview:
        nonlocal stop
        reading.step(stretch.start, stretch.stop, stretch.start - piece.start)
        stop = max(stop, stretch.stop + len(separator))
        return window.view(stretch.start, stretch.stop)

    def pieces(first: Stretch) -> Generator[tuple[Buffer, bool], None, None]:
        for stretch in chain([first], stretches):
            yield seen(stretch), stretch.final
            if stretch.final:
                return

    window.expect(max(0, piece.start - len(separator)), piece.stop)
    stretches = own_stretches(window, separator, piece.start, piece.stop, STRETCH_BYTES)
    for stretch in stretches:
        if stretch.start == 0:
            reading.refuse_other_kind(window.view(0, min(stretch.stop, utf8.HEAD_BYTES)))
        if stretch.is_piece:
            # Closed when they are read: a view of the last would keep the window from growing.
            with closing(pieces(stretch)) as long_text:
                yield LongText(long_text, stretch.start)
        else:
            yield Text(seen(stretch), stretch.start)
    reading.need(piece.start, stop)
