"""The block reader: a stream of bytes as blocks of whole records, in a buffer that is reused.

A record ends with a separator: LF for JSON Lines, the document separator for text. Separators are found from left to
right without overlap, as `bytes.split` finds them. A block holds as many whole records as fit. A record that is longer
than two blocks comes in pieces, so memory use does not depend on the input.

Any part of a file can be read on its own: `OwnedRange` has the whole records of a part, and the ranges of adjacent
parts are adjacent.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from functools import cache
from typing import NamedTuple, Protocol

from tokenmill.errors import naming
from tokenmill.inputs import _core
from tokenmill.inputs.buffers import GrowingBuffer
from tokenmill.inputs.errors import BadInput, changed_while_read
from tokenmill.stores import RandomFile
from tokenmill.stores.files import read_at

BLOCK_BYTES = 4 << 20
SCAN_BYTES = 64 << 10  # read first to find a boundary; later reads are larger
MAX_SCAN_BYTES = 1 << 20
KEPT_BYTES = 256  # kept of a record that is too long to be held, to show it in errors


class ByteStream(Protocol):
    """The bytes of a file in order, decompressed if it is compressed."""

    @property
    def used_bytes(self) -> int:
        """About how many bytes of the file were used so far."""
        ...

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill the beginning of `buffer` and return the number of bytes, 0 only at the end."""
        ...


class Block(NamedTuple):
    """Whole records with their separators, or a piece of one long record, which may end within a character.

    data: valid until the next block is read.
    start: offset of the block in the stream.
    separator_bytes: length of the separator at the end of `data`, 0 if it does not end with one.
    is_piece: part of one record.
    is_last: no piece of the same record follows.
    """

    data: memoryview
    start: int
    separator_bytes: int = 0
    is_piece: bool = False
    is_last: bool = True

    @property
    def text(self) -> memoryview:
        """The data without the separator at the end."""
        return self.data[: len(self.data) - self.separator_bytes]


def record_blocks(
    stream: ByteStream,
    separator: bytes,
    buffer: GrowingBuffer,
    start: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Block]:
    """Read a stream as blocks. Where they end depends on the bytes only, not on the sizes that the stream returns.

    b"a|b|c" with b"|" -> one block, b"a|b|c"; with block_bytes=4 -> b"a|b|", b"c". If the stream is damaged, BadInput
    is raised after the last whole record before the damage.

    start: offset of the stream's first byte, for `Block.start`.
    """
    length, limit = len(separator), 2 * block_bytes + len(separator)
    memory = buffer.grow(limit)
    held = searched = 0  # bytes in the buffer, and how many of them need no second search
    wanted = block_bytes  # bytes to hold before the search
    is_piece = at_end = False
    damage: BadInput | None = None
    while True:
        while held < wanted and not at_end:
            try:
                count = stream.readinto(memoryview(memory)[held:wanted])
            except BadInput as error:
                count, damage = 0, error
            held, at_end = held + count, not count
        if not held and not is_piece and damage is None:
            return
        stop = _separator_end(memory, separator, searched, held, is_last=not is_piece)
        if stop >= 0 and (is_piece or not at_end or damage is not None or stop == held):
            block = Block(memoryview(memory)[:stop], start, length, is_piece)
            is_piece = False
        elif damage is not None:
            raise damage
        elif at_end:
            block = Block(memoryview(memory)[:held], start, 0, is_piece)
            is_piece = False
        elif is_piece or held == limit:
            is_piece = True
            stop = held - length + 1  # a separator may begin in the bytes after it
            block = Block(memoryview(memory)[:stop], start, 0, is_piece=True, is_last=False)
        else:
            searched, wanted = max(0, held - length + 1), limit
            continue
        yield block
        used = len(block.data)
        memory[: held - used] = memory[used:held]
        held, start, searched = held - used, start + used, 0
        wanted = block_bytes if held < block_bytes else limit


def pieces_of(block: Block, blocks: Iterator[Block]) -> Generator[tuple[memoryview, bool], None, None]:
    """Yield (text, is_last) for the pieces of a long record: `block` is the first, `blocks` has the others."""
    while True:
        yield block.text, block.is_last
        if block.is_last:
            return
        block = next(blocks)


def _separator_end(memory: bytearray, separator: bytes, searched: int, held: int, is_last: bool) -> int:
    """The end of the first or last separator in the buffer, -1 if there is none."""
    if is_last and overlaps(separator):  # which of them separate depends on those before
        starts = _core.find_separators(memoryview(memory)[:held], separator)
        start = int(starts[-1]) if len(starts) else -1
    else:
        start = (memory.rfind if is_last else memory.find)(separator, searched, held)
    return start if start < 0 else start + len(separator)


@cache
def overlaps(separator: bytes) -> tuple[bytes, ...]:
    """The bytes that precede an occurrence of the separator if another one reaches into it.

    b"aXa" -> (b"aX",), b"aaa" -> (b"a", b"aa"), b"<s>" -> ().
    """
    return tuple(
        separator[:shift] for shift in range(1, len(separator)) if separator.startswith(separator[shift:])
    )


def read_range(file: RandomFile, path: str, start: int, stop: int) -> bytearray:
    """Return bytes [start, stop) of a file. FatalInput if it ends before `stop`."""
    with naming(path):
        data = read_at(file, start, stop - start)
    if len(data) < stop - start:
        raise changed_while_read(path, f"ends at byte {start + len(data)}")
    return data


class FileRange:
    """Bytes [start, stop) of a file as a ByteStream. path: name of the file in errors."""

    def __init__(self, file: RandomFile, path: str, start: int, stop: int) -> None:
        file.expect(start, stop)
        self.start = start
        self._file, self._path = file, path
        self._offset, self._stop = start, stop

    @property
    def used_bytes(self) -> int:
        return self._offset - self.start

    def readinto(self, buffer: memoryview) -> int:
        if self._offset == self._stop:
            self._extend()
        room = min(len(buffer), self._stop - self._offset)
        if room == 0:
            return 0
        with naming(self._path):
            count = self._file.readinto_at(self._offset, buffer[:room])
        if not count:
            raise changed_while_read(self._path, f"ends at byte {self._offset}")
        self._offset += count
        return count

    def _extend(self) -> None:
        """Move `stop`, if there is more to read."""


class OwnedRange(FileRange):
    """The whole records that a part [start, stop) of a file of `size` bytes owns, as a ByteStream; may be empty.

    The range starts at the boundary of `start` and ends at the boundary of `stop`. The boundary of an offset is the
    end of the first separator that ends at or after the offset and that no other occurrence reaches into. A scan from
    byte 0 finds this separator, whatever comes before. Without such a separator the boundary is the end of the file.
    "a|bb|c" in parts of 2 bytes -> "a|", "bb|", "c". "xaaaay" with separator "aa" -> "xaa", "aay", "".
    """

    def __init__(
        self, file: RandomFile, path: str, separator: bytes, part: tuple[int, int], size: int
    ) -> None:
        start, stop = part
        file.expect(max(0, start - 2 * len(separator)), stop)
        begin = 0 if start == 0 else _boundary(file, path, separator, start, stop - 1)
        self._separator, self._size = separator, size
        self._searched = stop  # the boundary of `stop` is at or after this offset
        self._is_complete = begin < 0 or stop >= size
        super().__init__(file, path, *((begin, min(stop, size)) if begin >= 0 else (start, start)))

    def _extend(self) -> None:
        if self._is_complete:
            return
        stop = min(self._searched + MAX_SCAN_BYTES, self._size)
        boundary = _boundary(self._file, self._path, self._separator, self._searched, stop)
        self._is_complete = boundary >= 0 or stop == self._size
        self._stop = boundary if boundary >= 0 else stop
        self._searched = stop + 1


def _boundary(file: RandomFile, path: str, separator: bytes, offset: int, stop: int) -> int:
    """The boundary of `offset` if it is at most `stop`, otherwise -1. Memory use is constant."""
    length, before, scan_bytes = len(separator), overlaps(separator), SCAN_BYTES
    offset = max(0, offset - length)  # the separator may begin here
    while offset + length <= stop:
        begin = max(0, offset - length + 1)  # of an occurrence that reaches into it
        data = read_range(file, path, begin, min(begin + 2 * length + scan_bytes, stop))
        start = data.find(separator, offset - begin)
        while start >= 0 and data.endswith(before, 0, start):
            start = data.find(separator, start + length)
        if start >= 0:
            return begin + start + length
        offset, scan_bytes = begin + len(data) - length + 1, MAX_SCAN_BYTES
    return -1


class StreamFile(io.RawIOBase):
    """A stream as an unbuffered file of Python, for modules that read one.

    `read` returns the next piece of the stream, so no data before an error is lost.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self._stream.readinto(memoryview(buffer).cast("B"))
