"""The documents of a source as events, in order, and what the readers of all kinds are given and tell.

A reader of a kind is a function `documents(reading)` that yields events:

- `Text`: whole documents with separators between them, the way of plain text that the core takes whole;
- `Documents`: documents end to end, from records (lines, rows);
- `LongText`: one document in pieces, which are to be read to the last before the next event is asked for;
- `LongLine` (tokenmill/inputs/long_line.py): the same of a JSON line, of which is known at its end whether it is good;
- None: all that came so far is counted in `reading.intake`; work may be cut into shards here.

Memory that events lie in is valid until the next one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenmill.errors import printable
from tokenmill.inputs import utf8
from tokenmill.inputs.batch import Batch
from tokenmill.inputs.blocks import BLOCK_BYTES, Block, FileRange, FileStream
from tokenmill.inputs.buffers import GrowingBuffer
from tokenmill.inputs.errors import BadInput, InvalidText
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.kinds import FORMATS
from tokenmill.inputs.long_line import LongLine
from tokenmill.inputs.read_ahead import decompressed
from tokenmill.inputs.source_list import Piece, Source
from tokenmill.inputs.text_window import TextWindow
from tokenmill.inputs.utf8 import LFS_ADVICE, LFS_POINTER
from tokenmill.stores import RandomFile
from tokenmill.stores.files import read_at

if TYPE_CHECKING:
    from typing_extensions import Buffer


BATCH_BYTES = 1 << 20  # of the texts of rows
MAX_BATCH_ROWS = 8192
_LFS_POINTER_BYTES = 1024  # a pointer is shorter


class Text(NamedTuple):
    """Whole documents with separators between them; start: of the text in its source."""

    text: memoryview
    start: int


class Documents(NamedTuple):
    """Documents end to end; places: where each begins in its source, a byte or, if `are_rows`, a row."""

    batch: Batch
    places: NDArray[np.uint64]
    are_rows: bool = False


class LongText(NamedTuple):
    """One document in pieces, each with whether it is the last; start: of the first one in the source."""

    pieces: Iterator[tuple[Buffer, bool]]
    start: int


Event = Text | Documents | LongText | LongLine | None
DAMAGE = (BadInput, InvalidText)  # what reading a damaged file raises


class UnpackedBlock(NamedTuple):
    """A part of a compressed source that was unpacked to a file of its own (unpack.py): whole records.

    start: offset of the block in the decompressed source. size: bytes in `file`.
    """

    file: RandomFile
    start: int
    size: int


class Buffers:
    """Memory kept from piece to piece, so that its pages are touched once. block_bytes: so much is read at a time."""

    def __init__(self, block_bytes: int = BLOCK_BYTES) -> None:
        self.block_bytes = block_bytes
        self.text = GrowingBuffer()
        self._values = np.empty(0, dtype=np.uint8)

    def values(self, size: int) -> NDArray[np.uint8]:
        """Memory for texts that are taken out of so many bytes of records."""
        if len(self._values) < size + 16:
            self._values = np.empty(max(size + 16, 2 * len(self._values)), dtype=np.uint8)
        return self._values


class Reading:
    """A piece of a source on its way through the reader of its kind.

    separator: of documents in text. intake: counts records, and says what becomes of bad ones. seen(offset, bytes): is
    given what is read of the file. need(start, stop): is told which bytes of the file the documents depend on.
    step(place, done_bytes): is told before an event what it holds, (start, stop) of the text or None, and about how
    much of the piece is done. file: the source, open. decoded_bytes: how much text came out of kinds whose size says
    little of it.
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
        seen: Callable[[int, memoryview], None] | None = None,
        need: Callable[[int, int], None] | None = None,
        step: Callable[[tuple[int, int] | None, int], None] | None = None,
        decompress_ahead: bool = False,
        block: UnpackedBlock | None = None,
    ) -> None:
        self.source_index, self.source, self.piece = source_index, source, piece
        self.intake, self.rules = intake, intake.rules
        self.separator, self.buffers = separator, buffers
        self.window = TextWindow(source, buffers.text, seen)
        self.file = self.window.file
        self.decoded_bytes = self.done_bytes = 0
        self.block, self.block_start = block, 0 if block is None else block.start
        self.seen, self._need, self._step = seen, need, step
        self._decompress_ahead = decompress_ahead

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self.window.close()

    def documents(self) -> Generator[Event, None, None]:
        """All documents of the piece. A source that cannot be read in parts belongs to the piece that it begins in.

        Damage ends the reading, see `damaged`. Within the pieces of a long document it is raised to the consumer.
        """
        try:
            yield from self._documents()
        except DAMAGE as error:
            self.damaged(error)

    def damaged(self, error: Exception) -> None:
        """Count the source as unreadable, or raise the error, as the rules say."""
        self.intake.bad_file(self.source_index, self.source, error)

    def refuse_other_kind(self, head: Buffer) -> None:
        """Raise InvalidText if a text file begins as an archive, a picture or UTF-16 does."""
        if utf8.other_kind(head):
            raise utf8.invalid_text(head, 0, printable(self.source.shown))

    def _documents(self) -> Iterator[Event]:
        kind = self.source.kind
        if self.piece.start > 0 and not kind.is_divisible:
            return
        refuse_lfs_pointer(self.source, self.file)
        if not kind.is_divisible:
            self.need(0, self.source.size_bytes)
        elif self.piece.start > 0 and self.rules.on_error != "fail" and not kind.is_decoded:
            self.refuse_other_kind(
                read_at(self.file, 0, utf8.HEAD_BYTES)
            )  # so that no piece of the file is taken
        yield from import_module(FORMATS[kind.format].reader).documents(self)

    def stream(self) -> AbstractContextManager[FileStream]:
        """All bytes of the source, decompressed if it is compressed."""
        source = self.source
        if self.block is not None:
            return nullcontext(FileRange(self.block.file, source.shown, 0, self.block.size))
        if source.kind.compression == "none":
            return nullcontext(FileRange(self.file, source.shown, 0, source.size_bytes, self.seen))
        return decompressed(source, self.rules.max_window_bytes, self._decompress_ahead, self.seen)

    def need(self, start: int, stop: int) -> None:
        """The documents depend on bytes [start, stop) of the file."""
        if self._need is not None:
            self._need(start, stop)

    def step(self, start: int, stop: int, done_bytes: int) -> None:
        """The next event holds [start, stop) of the text."""
        if self._step is not None:
            self._step((start, stop), done_bytes)

    def rows(self, batch: Batch, places: NDArray[np.uint64], done_bytes: int = 0) -> Documents:
        """The event of some rows of a table."""
        if self._step is not None:
            self._step(None, done_bytes)
        self.decoded_bytes += int(batch.offsets[-1])
        return Documents(batch, places, are_rows=True)

    def texts(self, rows: Iterator[tuple[int, bytes]], stream: FileStream) -> Iterator[Event]:
        """The events of texts with their row numbers, about a MiB at a time; those before damage come before it."""
        texts: list[bytes] = []
        places: list[int] = []
        text_bytes = 0
        damage: Exception | None = None
        try:
            for number, text in rows:
                texts.append(text)
                places.append(number)
                text_bytes += len(text)
                if text_bytes >= BATCH_BYTES or len(texts) == MAX_BATCH_ROWS:
                    yield self.rows(Batch.of(texts), np.array(places, np.uint64), stream.used_bytes)
                    yield None
                    texts, places, text_bytes = [], [], 0
        except DAMAGE as error:
            damage = error
        if texts:
            yield self.rows(Batch.of(texts), np.array(places, np.uint64), stream.used_bytes)
        yield None
        if damage is not None:
            raise damage

    def block_seen(self, block: Block, used_bytes: int) -> None:
        """The next event is of this block of a stream."""
        self.step(block.start, block.start + len(block.text), used_bytes)
        if self.source.kind.is_decoded:
            self.decoded_bytes += len(block.text)


def refuse_lfs_pointer(source: Source, file: RandomFile) -> None:
    """Raise BadInput for a source of any kind, open as `file`, that is a Git LFS pointer instead of the data."""
    if not len(LFS_POINTER) < source.size_bytes < _LFS_POINTER_BYTES:
        return
    head = bytearray(len(LFS_POINTER))
    if file.readinto_at(0, memoryview(head)) == len(head) and head == LFS_POINTER:
        raise BadInput(f"{printable(source.shown)}: {LFS_ADVICE}")


def pass_over(event: Event) -> None:
    """Read to its end what comes in pieces, for who has no use for it."""
    if isinstance(event, LongText):
        for _ in event.pieces:
            pass
    elif isinstance(event, LongLine):
        for _ in event.texts():
            pass
