"""Read the text of files, pipes and buffers in blocks that can be pretokenized separately.

A block ends only where the text may be cut whatever follows: after a special token that cannot become a longer one, or
where the pattern allows it (`PretokenCounter.last_cut`). Text without such an offset is held until the end, up to a
limit. Two buffers alternate, because fresh memory per block would cost a tenth of the counting time. While a block of a
file is counted, a thread reads the next one. Pipes are not read ahead, because a read may never return.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from io import FileIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bpe.errors import NotEnoughMemory, system_failure
from bpe.pretoken_counts.counts_facts import CountedSource
from bpe.pretoken_counts.sources import FileRange, file_of, name_of, path_of
from tokenmill.inputs import utf8
from tokenmill.inputs.blocks import FileRange as FileStream
from tokenmill.inputs.decompress import DecompressedFile
from tokenmill.inputs.sizes import bytes_text
from tokenmill.stores import read_at

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from bpe.pretoken_counts.sources import Source
    from tokenmill.inputs.kinds import Kind
    from tokenmill.inputs.source_list import Source as File

# A block takes a few milliseconds, which bounds the delay of Ctrl-C. It stays in the cache until it is counted.
THREAD_BLOCK_BYTES: Final = 2 << 20
MAX_BLOCK_BYTES: Final = 256 << 20
_REPLACED_AT_ONCE: Final = 1 << 18  # bytes; an invalid one becomes three, and several copies are held
_UNKNOWN: Final = 1 << 61


class HeldLimit(NamedTuple):
    """The limit for text that is held because it cannot be cut.

    bytes: the limit.
    memory_for: the memory limit, as text, with which that many bytes may be held.
    """

    bytes: int
    memory_for: Callable[[int], str]

    def refused(self, reader: Reader, start: int, held_bytes: int) -> NotEnoughMemory:
        """Return the error for text that cannot be cut after byte `start` of its source."""
        left = reader.left_bytes * (3 if reader.replaces else 1)
        enough = self.memory_for(held_bytes + (left if left < _UNKNOWN else held_bytes))
        return NotEnoughMemory(
            f"{reader.where}: byte {start}: no place to split the next {bytes_text(held_bytes)}, more than the memory "
            f"limit allows. Pass the special token that ends documents, or --max-memory {enough} or more."
        )


class Block(NamedTuple):
    """Text of a source.

    text: valid until the next block is read.
    base_bytes: offset of the text in its source, after replacements.
    """

    text: memoryview
    base_bytes: int


class _Memory:
    """A stream that reads a buffer."""

    def __init__(self, data: Buffer) -> None:
        self.rest = memoryview(data).cast("B")

    def readinto(self, room: memoryview) -> int:
        count = min(len(room), len(self.rest))
        room[:count], self.rest = self.rest[:count], self.rest[count:]
        return count


class Reader:
    """Reads the bytes of one source, decompressed; a context manager.

    where: name of the source in errors.
    start: offset of the first byte in a file.
    read_bytes: bytes read so far.
    replaced: number of inserted U+FFFD.
    file: the file or object; None for pipes and buffers.
    """

    def __init__(self, source: Source, kind: Kind, invalid: utf8.Invalid = "error") -> None:
        self.where = name_of(source)
        self.start = source.start if isinstance(source, FileRange) else 0
        self.read_bytes = self.replaced = 0
        self.replaces = invalid == "replace"
        self.file: File | None = None
        self._stream: Any
        self._opened: Any = None
        self._size: int | None = None
        self._rest = b""  # when replacing: the beginning of an incomplete character
        path = path_of(source)
        try:
            if path is None or path.is_file():
                self.file = file_of(source, kind)
            if self.file is not None:
                self._open(self.file, source.stop if isinstance(source, FileRange) else None)
            elif path is not None:
                self._stream = self._opened = FileIO(os.fspath(path))
            elif isinstance(source, io.IOBase):
                self._stream = source
            else:
                self._stream = _Memory(source)  # type: ignore[arg-type]
                self._size = len(self._stream.rest)
        except OSError as error:
            raise system_failure(self.where, error) from error

    def _open(self, file: File, stop: int | None) -> None:
        self._opened = file.open()
        if file.kind.compression == "none":
            stop = file.size_bytes if stop is None else stop
            self._stream = FileStream(self._opened, file.shown, self.start, stop)
            self._size = stop - self.start
        else:
            self._stream = DecompressedFile(self._opened, file.shown, file.kind.compression)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def used_bytes(self) -> int:
        """Return the approximate number of bytes of the source that were used."""
        return self.read_bytes if self.file is None else int(self._stream.used_bytes)

    @property
    def left_bytes(self) -> int:
        """Return the number of bytes still to be read, or more than any memory if it is unknown."""
        return 1 << 62 if self._size is None else self._size - self.read_bytes

    def counted(self) -> CountedSource:
        """Return the entry for the facts. The source must have been read to its end."""
        if self.file is None:
            return CountedSource(self.where, self.read_bytes, self.read_bytes)
        name = self.file.shown if self.file.version else os.path.realpath(self.file.path)
        size = self.file.size_bytes
        counted = size if self._size is None else self._size
        return CountedSource(name, size, counted, self.file.mtime_ns)

    def starts_in_document(self, special_tokens: Sequence[bytes]) -> bool:
        """Return whether the text continues a document: it starts inside a file and not after a special token."""
        if self.start == 0:
            return False
        longest = min(self.start, max(map(len, special_tokens), default=0))
        before = bytes(read_at(self._opened, self.start - longest, longest))
        return not before.endswith(tuple(special_tokens))

    def fill(self, room: memoryview) -> int:
        """Fill `room` and return the number of bytes, less than its size only at the end of the source."""
        filled = 0
        try:
            while filled < room.nbytes and (count := self._stream.readinto(room[filled:])):
                filled += count
        except OSError as error:
            raise system_failure(
                f"{self.where}: byte {self.start + self.read_bytes + filled}", error
            ) from error
        if not self.read_bytes and not self.start and utf8.other_kind(head := room[:filled]):
            raise utf8.invalid_text(head, 0, self.where)
        self.read_bytes += filled
        return filled

    def read(self, buffer: bytearray, at: int, size: int) -> tuple[bytearray, int, bool]:
        """Read about `size` bytes of text to offset `at` of the buffer.

        Return (the buffer or a larger one, the end of the text in it, whether the source is at its end). If invalid
        bytes are errors, the text is not checked.
        """
        size = min(size, max(self.left_bytes, 0) + 1)  # small files need small buffers
        if self.replaces:
            return self._read_replacing(buffer, at, size)
        buffer = _with_room(buffer, at, at + size)
        filled = self.fill(memoryview(buffer)[at : at + size])
        return buffer, at + filled, filled < size

    def _read_replacing(self, buffer: bytearray, at: int, size: int) -> tuple[bytearray, int, bool]:
        """Read like `read`, with U+FFFD for invalid bytes."""
        buffer = _with_room(buffer, at, at + size + 3 * _REPLACED_AT_ONCE)
        stop, at_end = at, False
        while not at_end and stop < at + size:
            piece = bytearray(min(_REPLACED_AT_ONCE, at + size - stop))
            filled = self.fill(memoryview(piece))
            at_end = filled < len(piece)
            data = self._rest + bytes(memoryview(piece)[:filled])
            rest = 0 if at_end else utf8.cut_character_bytes(data[-3:])
            data, self._rest = data[: len(data) - rest], data[len(data) - rest :]
            valid, replaced = utf8.replace_invalid(data)
            self.replaced += replaced
            start, stop = stop, stop + memoryview(valid).nbytes
            memoryview(buffer)[start:stop] = memoryview(valid)
        return buffer, stop, at_end


def _with_room(buffer: bytearray, kept: int, size: int) -> bytearray:
    """Return the buffer, or a copy of its first `kept` bytes with room for `size`."""
    if size <= len(buffer):
        return buffer
    # A sixteenth more, because the size of the carried text varies. Views of the old buffer forbid resizing it.
    larger = bytearray(size + (size // 16 if size >= 1 << 20 else 0))
    larger[:kept] = memoryview(buffer)[:kept]
    return larger


def text_blocks(
    reader: Reader, last_cut: Callable[[Buffer], int], block_bytes: int, held_limit: HeldLimit | None = None
) -> Generator[Block, None, None]:
    """Yield the text of the reader in blocks of about `block_bytes`.

    last_cut: returns the last offset at which a text may be cut, 0 if there is none.
    held_limit: raise NotEnoughMemory before more text is held.
    """
    buffer, other = bytearray(), bytearray()
    carry = base_bytes = 0
    at_end = False
    ahead: Future[tuple[bytearray, int, bool]] | None = None
    # Leaving the context waits for a running read, because the file is closed next.
    with ThreadPoolExecutor(1, "bpe reader") as pool:
        while not at_end:
            if ahead is not None:
                buffer, stop, at_end = ahead.result()
                ahead = None
            else:
                # At least as much as is held, so that text that cannot be cut is searched log n times.
                more = max(block_bytes, carry)
                if (
                    held_limit is not None
                    and carry
                    and carry + min(more, reader.left_bytes) > held_limit.bytes
                ):
                    more = held_limit.bytes - carry
                    if more < min(block_bytes, reader.left_bytes):
                        raise held_limit.refused(reader, reader.start + base_bytes, carry)
                buffer, stop, at_end = reader.read(buffer, carry, more)
            tail = bytes(memoryview(buffer)[max(0, stop - 3) : stop])
            whole = stop if at_end else stop - utf8.cut_character_bytes(tail)
            text = memoryview(buffer)[:whole]
            cut = whole if at_end else last_cut(text)
            while 0 < cut < whole and text[cut] & 0xC0 == 0x80:
                cut -= 1  # invalid UTF-8: cut before the character, so that the error names the right byte
            carry = stop - cut
            if cut:
                other = _with_room(other, 0, carry)
                other[:carry] = memoryview(buffer)[cut:stop]
                if reader.file is not None and not at_end and carry <= block_bytes:
                    ahead = pool.submit(reader.read, other, carry, block_bytes)
                yield Block(text[:cut], reader.start + base_bytes)
                # Drop a buffer that grew large for text without a cut.
                buffer, other = other, buffer if len(buffer) <= 4 * block_bytes else bytearray()
            base_bytes += cut
