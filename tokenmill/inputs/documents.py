"""The interface of all readers: a source becomes a sequence of events.

A reader is a function `documents(reading)` in the module that `FORMATS` names. It yields:

- `Text`: whole documents of plain text with separators between them, which the core encodes in one call;
- `Documents`: a batch of documents end to end, from records (lines, rows, files of an archive);
- `LongText`: one document of plain text in pieces; read all of them before the next event;
- None: everything so far is counted in `reading.intake`, so a temporary shard may end here.

The memory of an event is valid until the next event is read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenmill.errors import printable
from tokenmill.inputs import utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import BLOCK_BYTES, Block, ByteStream, FileRange, OwnedRange, record_blocks
from tokenmill.inputs.buffers import GrowingBuffer
from tokenmill.inputs.decompress import DecompressedFile
from tokenmill.inputs.errors import BadInput, InvalidText
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.kinds import FORMATS
from tokenmill.inputs.source_list import Piece, Source
from tokenmill.inputs.utf8 import LFS_ADVICE, LFS_POINTER
from tokenmill.stores import RandomFile
from tokenmill.stores.files import read_at

if TYPE_CHECKING:
    from typing_extensions import Buffer


BATCH_BYTES = 1 << 20  # of text in a batch of rows
MAX_BATCH_ROWS = 8192
_MAX_LFS_POINTER_BYTES = 1024


class Text(NamedTuple):
    """Whole documents with separators between them. start: offset of the text in its source."""

    text: memoryview
    start: int


class Documents(NamedTuple):
    """Documents end to end.

    places: for each, the offset of its record in the source, or its row if `are_rows`.
    lines: for JSON Lines, the number of its line, from the first line of the piece.
    """

    batch: Batch
    places: NDArray[np.uint64]
    are_rows: bool = False
    lines: NDArray[np.uint64] | None = None

    def without(self, rows: NDArray[Any]) -> Documents:
        """Return a copy without the documents of these indices."""
        rows = rows.astype(np.int64)
        lines = None if self.lines is None else np.delete(self.lines, rows)
        return Documents(self.batch.without(rows), np.delete(self.places, rows), self.are_rows, lines)


class LongText(NamedTuple):
    """One document as (piece, is_last). start: offset of the first piece in its source."""

    pieces: Iterator[tuple[Buffer, bool]]
    start: int


Event = Text | Documents | LongText | None
DAMAGE = (BadInput, InvalidText)  # raised for a damaged file


class UnpackedBlock(NamedTuple):
    """Whole records of a compressed source that were unpacked to a separate file.

    start: offset of the block in the decompressed source. size: bytes in `file`.
    """

    file: RandomFile
    start: int
    size: int


class Buffers:
    """Memory that is reused from read to read, so that its pages are touched once.

    block_bytes: size of a block. text: for blocks. values: for texts that a reader copies.
    """

    def __init__(self, block_bytes: int = BLOCK_BYTES) -> None:
        self.block_bytes = block_bytes
        self.text, self.values = GrowingBuffer(), GrowingBuffer()


class Reading:
    """A piece of a source while it is read; a context manager.

    piece: the part of the source to read.
    intake: counts records and decides what happens to bad ones.
    separator: between the documents of text.
    block: read this unpacked block instead of the source.
    file: the open source (or block).
    table_bytes: about how many bytes of the piece are done, set by readers of tables that do not call `stream`.
    decoded_bytes: bytes of text in the events so far, counted for compressed sources.
    """

    def __init__(
        self,
        source_index: int,
        source: Source,
        piece: Piece,
        intake: Intake,
        separator: bytes,
        buffers: Buffers,
        *,
        block: UnpackedBlock | None = None,
    ) -> None:
        self.source_index, self.source, self.piece = source_index, source, piece
        self.intake, self.rules = intake, intake.rules
        self.separator, self.buffers, self.block = separator, buffers, block
        self.file = source.open() if block is None else block.file
        self.table_bytes = self.decoded_bytes = 0
        self._stream: ByteStream | None = None

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def done_bytes(self) -> int:
        """About how many bytes of the piece are done, for progress."""
        return self.table_bytes if self._stream is None else self._stream.used_bytes

    def close(self) -> None:
        """Close the source. A block stays open, because the caller opened it."""
        if self.block is None:
            self.file.close()

    def documents(self) -> Generator[Event, None, None]:
        """Yield the events of the piece. A source that cannot be divided belongs to the piece at its beginning.

        Damage ends the reading, see `damaged`. Within a long document it is raised to the consumer.
        """
        try:
            if self.piece.start == 0 or self.source.kind.is_divisible:
                self.check_content()
                yield from import_module(FORMATS[self.source.kind.format].reader).documents(self)
        except DAMAGE as error:
            self.damaged(error)

    def damaged(self, error: Exception) -> None:
        """Count the source as unreadable, or raise the error, as the rules say."""
        self.intake.bad_file(self.source_index, self.source, error)

    def check_content(self) -> None:
        """Raise BadInput for a Git LFS pointer, and InvalidText if the content contradicts the kind of the source.

        Readers check the head of a file themselves. If bad files are skipped, all pieces of the file must notice.
        """
        if self.block is not None:
            return
        has_size = len(LFS_POINTER) < self.source.size_bytes < _MAX_LFS_POINTER_BYTES
        if has_size and read_at(self.file, 0, len(LFS_POINTER)) == LFS_POINTER:
            raise BadInput(f"{printable(self.source.shown)}: {LFS_ADVICE}")
        if self.piece.start > 0 and self.rules.on_error != "fail" and not self.source.kind.is_decoded:
            self.refuse_other_kind(read_at(self.file, 0, utf8.HEAD_BYTES))

    def refuse_other_kind(self, head: Buffer) -> None:
        """Raise InvalidText if a text file begins as an archive, a picture or UTF-16 does."""
        if utf8.other_kind(head):
            raise utf8.invalid_text(head, 0, printable(self.source.shown))

    def stream(self) -> ByteStream:
        """Return all bytes of the source, decompressed if it is compressed, or all bytes of the block."""
        source, compression = self.source, self.source.kind.compression
        if self.block is not None:
            self._stream = FileRange(self.file, source.shown, 0, self.block.size)
        elif compression == "none":
            self._stream = FileRange(self.file, source.shown, 0, source.size_bytes)
        else:
            self._stream = DecompressedFile(self.file, source.shown, compression, self.rules.max_window_bytes)
        return self._stream

    def blocks(
        self,
        separator: bytes,
        block_bytes: int,
        *,
        is_divided: bool,
        wrap: Callable[[ByteStream], ByteStream] | None = None,
    ) -> Iterator[Block]:
        """Yield the records of the piece as blocks.

        is_divided: read only the records that the piece owns (`OwnedRange`), not the whole source.
        wrap: changes the stream before it is cut into records.
        """
        source, first = self.source, 0
        if self.block is not None:
            stream, first = self.stream(), self.block.start
        elif is_divided:
            part = self.piece.start, self.piece.stop
            self._stream = stream = OwnedRange(self.file, source.shown, separator, part, source.size_bytes)
            first = stream.start
        else:
            stream = self.stream()
        stream = stream if wrap is None else wrap(stream)
        for block in record_blocks(stream, separator, self.buffers.text, first, block_bytes):
            if block.start == 0:
                self.refuse_other_kind(block.data)
            if source.kind.is_decoded and block.is_last:
                self.decoded_bytes = block.start - first + len(block.data)
            yield block

    def rows(self, batch: Batch, places: NDArray[np.uint64]) -> Documents:
        """Return the event for rows of a table."""
        self.decoded_bytes += int(batch.offsets[-1])
        return Documents(batch, places, are_rows=True)
