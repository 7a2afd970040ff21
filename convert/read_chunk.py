"""The documents of a text chunk, some MiB at a time, from whatever its sources are; and the digests of their bytes.

Reading and encoding are apart, so that what is read can also be hashed only (convert/held_out.py) or passed over
(convert/open_chunk.py).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from itertools import chain
from operator import methodcaller
from typing import TYPE_CHECKING, Protocol

from numpy import uint64
from numpy.typing import NDArray

from convert.clock import Clock
from convert.engine.worker_process import take_step
from convert.job import Job
from convert.plan import TextChunk
from corpus.batch import Batch
from corpus.blocks import (
    BLOCK_BYTES,
    Block,
    FileStream,
    own_lines,
    pieces_of,
    record_blocks,
    watched,
)
from corpus.buffers import GrowingBuffer
from corpus.digest import BlockDigests
from corpus.intake import Intake
from corpus.kinds import PLAIN_TEXT
from corpus.long_line import LongLine
from corpus.read_ahead import decompressed
from corpus.read_jsonl import JsonLines
from corpus.read_parquet import parquet_batches
from corpus.source_list import Piece, Source
from corpus.sources import require_unchanged
from corpus.stretches import STRETCH_BYTES, Stretch, own_stretches
from corpus.text_window import TextWindow

if TYPE_CHECKING:
    from typing_extensions import Buffer


class DocumentTaker(Protocol):
    """What is done with documents: see `DocumentEncoder`."""

    def stretch(self, source_index: int, source: Source, text: memoryview, start: int) -> None:
        """Whole documents with separators between them."""
        ...

    def batch(self, source_index: int, source: Source, batch: Batch, places: NDArray[uint64]) -> None:
        """Documents end to end."""
        ...

    def pieces(
        self, source_index: int, source: Source, pieces: Iterator[tuple[Buffer, bool]], start: int
    ) -> None:
        """One document in pieces, which are to be read to the last."""
        ...

    def long_line(self, source_index: int, source: Source, line: LongLine) -> None:
        """A JSON line in pieces, the texts of which are to be read to the last."""
        ...


# Gives some documents to one who takes them, by one of its methods; to be called once, before the next are asked for.
Give = Callable[[DocumentTaker], None]


class Rooms:
    """Memory kept from chunk to chunk, so that its pages are touched once: the text of a stretch or block, the lines'
    texts. block_bytes: of what comes as a stream, so much is read at a time."""

    def __init__(self, block_bytes: int = BLOCK_BYTES) -> None:
        self.block_bytes = block_bytes
        self.text = GrowingBuffer()
        self.lines = JsonLines(block_bytes)


class ChunkReader:
    """Reads a text chunk once. Records are counted in `intake`, which says too what becomes of bad ones.

    with_digests: of the sources too; when all documents were given, `digests` has those of the chunk's blocks, end to
    end, and `edges` (source, start, stop, hex digest) of what else was read (corpus/digest.py).
    packed_bytes: how much text of packed sources was read. done_bytes: about how much of the chunk's work is done.
    """

    def __init__(
        self,
        job: Job,
        chunk: TextChunk,
        rooms: Rooms,
        intake: Intake,
        clock: Clock,
        *,
        with_digests: bool = True,
    ) -> None:
        self._job, self._chunk, self._rooms = job, chunk, rooms
        self._intake, self._clock, self._with_digests = intake, clock, with_digests
        self.packed_bytes = self.done_bytes = 0
        self._done_before = 0  # of done_bytes: by the pieces before
        self.digests = bytearray()
        self.edges: list[tuple[int, int, int, str]] = []

    def documents(self) -> Generator[Give | None, None, None]:
        """All of them, in order; None: what came so far is counted, and a shard may end.

        BadInput if a source is not as it was when the work was planned.
        """
        plan = self._job.plan
        for piece in plan.pieces(self._chunk):
            source = plan.sources[piece.source_index]
            yield from self._read(piece, source)
            self._done_before += plan.piece_work_bytes(piece)
            self.done_bytes = self._done_before

    def _read(self, piece: Piece, source: Source) -> Iterator[Give | None]:
        clock = self._clock
        own = BlockDigests(piece.start, piece.stop, source.size_bytes)

        def seen(offset: int, data: memoryview) -> None:
            clock.lap("read")
            own.see(offset, data)
            clock.lap("hash")

        with_digests = self._with_digests and not source.version  # which stands for the bytes of an object
        with TextWindow(source, self._rooms.text, seen if with_digests else None) as window:
            require_unchanged(source, window.status())
            yield from self._piece(piece, source, window, own)
            if not with_digests:
                return
            clock.lap("read")
            self.edges.extend((piece.source_index, *edge) for edge in own.edges(window))
            self.digests += own.finish(window)
            clock.lap("hash")
            require_unchanged(source, window.status())

    def _piece(
        self, piece: Piece, source: Source, window: TextWindow, own: BlockDigests
    ) -> Iterator[Give | None]:
        """`own` is told which bytes of the file the documents depend on, once they are read."""
        if source.kind == PLAIN_TEXT:
            yield from self._plain_text(piece, source, window, own)
            return
        if source.version:
            pass
        elif source.kind.is_plain and source.kind.format == "jsonl":
            with source.open() as file:
                lines = own_lines(file, source.shown, source.size_bytes, piece.start, piece.stop)
            own.need(piece.start - 1, lines[1])
        elif not source.kind.is_plain and piece.start == 0:
            own.need(0, source.size_bytes)
        if source.kind.format == "jsonl":
            yield from self._json_lines(piece, source, own)
        elif source.kind.format == "parquet":
            yield from self._parquet(piece, source, own)
        elif piece.start == 0:  # what is compressed belongs to the piece that the file begins in
            yield from self._text_stream(piece, source, own)

    def _plain_text(
        self, piece: Piece, source: Source, window: TextWindow, own: BlockDigests
    ) -> Iterator[Give | None]:
        index, separator = piece.source_index, self._job.separator
        stop = piece.stop

        def seen(stretch: Stretch) -> None:
            nonlocal stop
            self._step((index, stretch.start, stretch.stop), stretch.start - piece.start)
            stop = max(stop, stretch.stop + len(separator))

        window.expect(max(0, piece.start - len(separator)), piece.stop)
        stretches = own_stretches(window, separator, piece.start, piece.stop, STRETCH_BYTES)
        for stretch in stretches:
            seen(stretch)
            if stretch.is_piece:
                # Closed when they are read: a view of the last would keep the window from growing.
                with closing(_window_pieces(window, chain([stretch], stretches), seen)) as pieces:
                    yield methodcaller("pieces", index, source, pieces, stretch.start)
            else:
                yield partial(_give_stretch, index, source, window, stretch)
        own.need(piece.start, stop)

    def _json_lines(self, piece: Piece, source: Source, own: BlockDigests) -> Iterator[Give | None]:
        index = piece.source_index
        seen = partial(self._seen_block, index, source)
        compressed = self._decompressed(source, own)
        for found in self._rooms.lines.batches(index, source, piece, self._intake, seen, compressed):
            if found is None:
                yield None
            elif isinstance(found, LongLine):
                yield methodcaller("long_line", index, source, found)
            else:
                yield methodcaller("batch", index, source, *found)

    def _parquet(self, piece: Piece, source: Source, own: BlockDigests) -> Iterator[Give | None]:
        index = piece.source_index
        for batch, places in parquet_batches(index, source, piece, self._intake, own.need):
            self._step(None, 0)
            self.packed_bytes += int(batch.offsets[-1])
            yield methodcaller("batch", index, source, batch, places)
            yield None

    def _text_stream(self, piece: Piece, source: Source, own: BlockDigests) -> Iterator[Give | None]:
        rooms, index = self._rooms, piece.source_index
        with self._decompressed(source, own) as stream:
            blocks = record_blocks(stream, self._job.separator, rooms.text, block_bytes=rooms.block_bytes)
            blocks = watched(blocks, stream, partial(self._seen_block, index, source))
            for block in blocks:
                if block.is_piece:
                    yield methodcaller("pieces", index, source, pieces_of(block, blocks), block.start)
                else:
                    yield methodcaller("stretch", index, source, block.text, block.start)
                yield None

    def _decompressed(self, source: Source, own: BlockDigests) -> AbstractContextManager[FileStream]:
        """Its own bytes are hashed on the way: a file of more than the memory holds would be read again for that."""
        job = self._job
        seen = own.see if self._with_digests and not source.version else None
        return decompressed(source, job.rules.max_window_bytes, job.decompress_ahead, seen)

    def _seen_block(self, source_index: int, source: Source, block: Block, used_bytes: int) -> None:
        self._step((source_index, block.start, block.start + len(block.text)), used_bytes)
        if source.kind.is_packed:
            self.packed_bytes += len(block.text)

    def _step(self, place: tuple[int, int, int] | None, done_bytes: int) -> None:
        """See `take_step`; done_bytes: of the piece."""
        self.done_bytes = self._done_before + done_bytes
        take_step(place, self.done_bytes)


def _give_stretch(
    index: int, source: Source, window: TextWindow, stretch: Stretch, taker: DocumentTaker
) -> None:
    taker.stretch(index, source, window.view(stretch.start, stretch.stop), stretch.start)


def _window_pieces(
    window: TextWindow, stretches: Iterator[Stretch], seen: Callable[[Stretch], None]
) -> Generator[tuple[Buffer, bool], None, None]:
    for stretch in stretches:
        seen(stretch)
        yield window.view(stretch.start, stretch.stop), stretch.final
        if stretch.final:
            return
