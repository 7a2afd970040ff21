"""The text of files, pipes and buffers in blocks that may be pretokenized apart.

A block ends only where the text may be cut whatever follows: after a special token that no longer one could be, or
where the pattern allows it (`PretokenCounter.last_cut`). A text without such a place is held whole, up to a limit.
Blocks lie in two buffers that are used again: fresh memory for each cost a tenth of the counting. While one
is worked on, a thread reads the other: of regular files only, since a read of a pipe may never return.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from io import FileIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bpe.errors import NotEnoughMemory, system_failure
from bpe.pretoken_counts.sources import FileRange, StreamRest, name_of, path_of
from tokenmill.inputs import utf8
from tokenmill.inputs.blocks import FileRange as FileStream
from tokenmill.inputs.decompress import DecompressedFile
from tokenmill.inputs.sizes import bytes_text
from tokenmill.stores import read_at

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.sources import Source
    from tokenmill.inputs.source_list import Source as File

# A few milliseconds of counting, which Ctrl-C and progress wait for: it stays in the cache between reading and
# counting.
THREAD_BLOCK_BYTES: Final = 2 << 20
MAX_BLOCK_BYTES: Final = 256 << 20
_REPLACED_AT_ONCE: Final = 1 << 18  # bytes: a wrong one becomes three, and they lie in memory some times
_UNKNOWN: Final = 1 << 61
_REPLACEMENT: Final = "\ufffd".encode()


class HeldLimit(NamedTuple):
    """How much text may be held for want of a place to cut, and the limit of all memory with which so much may be."""

    bytes: int
    memory_for: Callable[[int], str]

    def refused(self, reader: Reader, start: int, held_bytes: int) -> NotEnoughMemory:
        """The error for text that goes on without a place to cut; start: its byte in the source."""
        left = reader.left_bytes * (3 if reader.replaces else 1)
        enough = self.memory_for(held_bytes + (left if left < _UNKNOWN else held_bytes))
        return NotEnoughMemory(
            f"{reader.where}: byte {start}: no place to split the next {bytes_text(held_bytes)}, more than the memory "
            f"limit allows. Pass the special token that ends documents, or --max-memory {enough} or more."
        )


class Block(NamedTuple):
    """text: valid until the next block is asked for. base_bytes: where it starts in its source, as text.

    position: the byte of the source that the next block starts with; None where replaced bytes make it uncertain.
    """

    text: memoryview
    base_bytes: int
    position: int | None


class Reader:
    """Reads one source; used as a context. read_bytes: of the source so far. replaced: how many U+FFFD were put in.

    status: of a regular file when it was opened; None: a stream. `read_again` goes before the rest of a stream.
    file: in place of the source; its bytes are decompressed. read_as: what facts say of how it is read.
    """

    def __init__(
        self, source: Source, invalid: utf8.Invalid, file: File | None = None, read_as: str = ""
    ) -> None:
        self.read_bytes = 0
        self.replaced = 0
        self.start = source.start if isinstance(source, FileRange) else 0
        self.where = name_of(source)
        self.read_as = read_as
        self.status: os.stat_result | None = None
        self.replaces = invalid == "replace"
        self._rest = b""  # when replacing: the start of a character whose end was not read yet
        self._left: int | None = None  # bytes of a stretch still to be read
        self._expected: int | None = None  # the size of a file, or more if it grows
        self._file: Any = None
        self._owned: Any = None  # what is open, unless others opened it
        self._text = memoryview(b"")
        self._before: bytes | None = None  # what comes before the rest of a stream
        self.file = file
        path = path_of(source)
        if file is not None:
            self._open(file, source.stop if isinstance(source, FileRange) else None)
            return
        if path is not None:
            try:
                self._file = self._owned = FileIO(self.where)
                status = os.fstat(self._file.fileno())
                if self.start:
                    self._file.seek(self.start)
            except OSError as error:
                raise system_failure(self.where, error) from error
            if stat.S_ISREG(status.st_mode):
                self.status = status
                self._expected = max(0, status.st_size - self.start)
            if isinstance(source, FileRange) and source.stop is not None:
                self._left = source.stop - source.start
            return
        stream = source.stream if isinstance(source, StreamRest) else source
        if isinstance(stream, io.IOBase):
            self._file = stream
        else:
            self._text = memoryview(stream).cast("B")  # type: ignore[arg-type]
            self._expected = self._text.nbytes

    def _open(self, file: File, stop: int | None) -> None:
        try:
            opened = file.open()
        except OSError as error:
            raise system_failure(self.where, error) from error
        self._owned, self.status = opened, opened.status()
        if file.kind.compression == "none":
            stop = file.size_bytes if stop is None else stop
            self._file = FileStream(opened, file.shown, self.start, stop)
            self._expected = stop - self.start
        else:
            self._file = DecompressedFile(opened, file.shown, file.kind.compression)

    @property
    def may_read_ahead(self) -> bool:
        """Whether a read ends by itself, and `read_bytes` and `replaced` may run ahead of the block worked on."""
        is_file = self.status is not None or self.file is not None
        return is_file and not self.replaces

    @property
    def used_bytes(self) -> int:
        """About how many bytes of the source hold what was read."""
        return int(self._file.used_bytes) if self.file is not None else self.read_bytes

    @property
    def left_bytes(self) -> int:
        """How much there still is to read, as far as it is known; more than any memory where it is not."""
        known = [] if self._left is None else [self._left]
        if self._expected is not None:
            known.append(self._expected - self.read_bytes)
        return max(0, min(known, default=1 << 62))

    def begin_at(self, start: int, before: bytes) -> None:
        """Take what was read so far, `start` bytes that end with `before`, as read by somebody else."""
        self.start, self._before, self.read_bytes = start, before, 0
        self._text = self._text[start:]
        if self._expected is not None:
            self._expected -= start

    def starts_in_document(self, special_tokens: Sequence[bytes]) -> bool:
        """Whether what is read goes on with a document that began before it, as it starts behind no special token."""
        if self.start == 0:
            return False
        before = self._before
        if before is None:
            longest = min(self.start, max(map(len, special_tokens), default=0))
            if self.file is not None:
                before = bytes(read_at(self._owned, self.start - longest, longest))
            else:
                self._file.seek(self.start - longest)
                before = self._file.read(longest) or b""
                self._file.seek(self.start)
        return not before.endswith(tuple(special_tokens))

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._owned is not None:
            self._owned.close()

    def fill(self, room: memoryview) -> int:
        """How many bytes were read into the room; less than all of it only at the end of the source."""
        filled = 0
        if self._file is None:
            part = self._text[self.read_bytes : self.read_bytes + room.nbytes]
            filled = part.nbytes
            room[:filled] = part
        else:
            try:
                while filled < room.nbytes and (count := self._file.readinto(room[filled:])):
                    filled += count
            except OSError as error:
                place = self.start + self.read_bytes + filled
                raise system_failure(f"{self.where}: byte {place}", error) from error
        self.read_bytes += filled
        if self._left is not None:
            self._left -= filled
        return filled

    def read(self, buffer: bytearray, at: int, size: int) -> tuple[bytearray, int, bool]:
        """(the buffer or a larger one, where the text in it now stops, whether that was the last of it).

        The next `size` bytes or so go to `at`. With "error" it may hold anything that is not valid UTF-8.
        """
        if self._expected is not None:  # not 16 MiB for each of a million small files
            size = min(size, max(self._expected - self.read_bytes, 0) + 1)
        if self._left is not None:
            size = min(size, self._left)
        if self.replaces:
            return self._read_replacing(buffer, at, size)
        buffer = _with_room(buffer, at, at + size)
        first = self.read_bytes == 0
        filled = self.fill(memoryview(buffer)[at : at + size])
        at_end = filled < size or self._left == 0
        head = memoryview(buffer)[at : at + min(filled, utf8.HEAD_BYTES)]
        if first and not self.start and utf8.other_kind(head):
            raise utf8.invalid_text(head, 0, self.where)
        return buffer, at + filled, at_end

    def _read_replacing(self, buffer: bytearray, at: int, size: int) -> tuple[bytearray, int, bool]:
        """The same with U+FFFD for what is wrong, piece by piece, until there is so much text."""
        buffer = _with_room(buffer, at, at + size + 3 * _REPLACED_AT_ONCE)
        stop, at_end = at, False
        while not at_end and stop < at + size:
            wanted = min(_REPLACED_AT_ONCE, at + size - stop)
            if self._left is not None:
                wanted = min(wanted, self._left)
            first = self.read_bytes == 0
            piece = bytearray(wanted)
            filled = self.fill(memoryview(piece))
            at_end = filled < wanted or self._left == 0
            if first and not self.start and utf8.other_kind(memoryview(piece)[: utf8.HEAD_BYTES]):
                raise utf8.invalid_text(memoryview(piece)[: utf8.HEAD_BYTES], 0, self.where)
            data = self._rest + bytes(memoryview(piece)[:filled])
            rest = 0 if at_end else utf8.cut_character_bytes(data[-3:])
            data, self._rest = data[: len(data) - rest], data[len(data) - rest :]
            # Wrong bytes are whole within such pieces: `rest` holds what a later byte could still complete.
            valid, replaced = utf8.replace_invalid(data)
            self.replaced += replaced
            start, stop = stop, stop + memoryview(valid).nbytes
            memoryview(buffer)[start:stop] = memoryview(valid)
        return buffer, stop, at_end

    def position(self, carry: memoryview) -> int | None:
        """The byte of the source at which `carry`, what was read last, starts; None if something in it was replaced."""
        if self.replaced and _REPLACEMENT in bytes(carry):
            return None
        return self.start + self.read_bytes - len(self._rest) - carry.nbytes


def _with_room(buffer: bytearray, kept: int, size: int) -> bytearray:
    if size <= len(buffer):
        return buffer
    # Views of the old one may still be held, so it can't be resized. A sixteenth more: what is carried over differs.
    larger = bytearray(size + (size // 16 if size >= 1 << 20 else 0))
    larger[:kept] = memoryview(buffer)[:kept]
    return larger


def text_blocks(
    reader: Reader, last_cut: Callable[[Buffer], int], block_bytes: int, held_limit: HeldLimit | None = None
) -> Generator[Block, None, None]:
    """The text of the reader, cut where its continuation does not matter.

    held_limit: NotEnoughMemory before more is held for want of a place to cut.
    """
    buffer, other = bytearray(), bytearray()
    carry = base_bytes = 0
    at_end = False
    pool: ThreadPoolExecutor | None = None
    ahead: Future[tuple[bytearray, int, bool]] | None = None
    with ExitStack() as at_exit:  # a read that goes on is waited for: the file is closed next
        while not at_end:
            # At least as much as is waiting, so that a text without a place to cut is searched log n times.
            more = max(block_bytes, carry)
            if held_limit is not None and carry and carry + min(more, reader.left_bytes) > held_limit.bytes:
                more = held_limit.bytes - carry  # as far as it may be held
                if ahead is None and more < min(block_bytes, reader.left_bytes):
                    raise held_limit.refused(reader, reader.start + base_bytes, carry)
            if ahead is not None:
                buffer, stop, at_end = ahead.result()
                ahead = None
            else:
                buffer, stop, at_end = reader.read(buffer, carry, more)
            tail = bytes(memoryview(buffer)[max(0, stop - 3) : stop])
            whole = stop if at_end else stop - utf8.cut_character_bytes(tail)
            text = memoryview(buffer)[:whole]
            cut = whole if at_end else last_cut(text)
            while 0 < cut < whole and text[cut] & 0xC0 == 0x80:
                cut -= 1  # not valid UTF-8: keep its characters together, so that the right byte is named
            carry = stop - cut
            if cut:
                carried = memoryview(buffer)[cut:stop]
                block = Block(text[:cut], reader.start + base_bytes, reader.position(carried))
                other = _with_room(other, 0, carry)
                other[:carry] = carried
                if not at_end and reader.may_read_ahead and carry <= block_bytes:
                    pool = pool or at_exit.enter_context(ThreadPoolExecutor(1, "bpe reading ahead"))
                    ahead = pool.submit(reader.read, other, carry, block_bytes)
                yield block
                # One that a text without a place to cut made large is not kept.
                buffer, other = other, buffer if len(buffer) <= 4 * block_bytes else bytearray()
            base_bytes += cut
