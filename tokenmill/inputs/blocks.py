"""A stream of bytes as blocks of whole records, in a buffer that is kept.

A record ends with a separator, found leftmost first and not overlapping from the first byte on. Each block holds as
many whole records as fit, and a record that does not comes in pieces, so memory is a few blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from tokenmill.errors import naming
from tokenmill.inputs import _core
from tokenmill.inputs.buffers import GrowingBuffer
from tokenmill.inputs.errors import BadInput, changed_while_read
from tokenmill.inputs.overlapping import overlaps_itself
from tokenmill.stores import RandomFile

BLOCK_BYTES = 4 << 20
_SCAN_BYTES = 1 << 20
HEAD_BYTES = 256  # what is kept of a record too long to be held, to show it


class ByteStream(Protocol):
    """What gives its bytes in order."""

    def readinto(self, buffer: memoryview, /) -> int:
        """Put bytes into `buffer`; how many, 0 only at the end."""
        ...


class FileStream(ByteStream, Protocol):
    """One that a file holds, as it is or compressed."""

    @property
    def used_bytes(self) -> int:
        """About how many bytes of the file hold what was read."""
        ...


class Block(NamedTuple):
    """Whole records, or a piece of a long one. text: with the separators between records, without the one behind.

    start: where it begins in the stream. closed: a separator follows it. is_piece: a part of one record, which may be
    cut within a character; `final`: the last of it. The text is valid until the next block is asked for.
    """

    text: memoryview
    start: int
    closed: bool = True
    is_piece: bool = False
    final: bool = True


def record_blocks(
    stream: ByteStream,
    separator: bytes,
    buffer: GrowingBuffer,
    start: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Block]:
    """The blocks of a stream; its first byte has the offset `start`.

    b"a|b|c" with b"|" -> b"a|b" and b"c", which is not closed. A stream that ends with a separator has nothing behind
    it, an empty one nothing at all. A record that does not fit two blocks comes in pieces. Where blocks end follows
    from the bytes alone, however many the stream gives at a time. buffer: reused, grown as needed. A damaged stream
    raises BadInput after the last whole record before the damage.
    """
    length = len(separator)
    most = 2 * block_bytes + length
    memory = buffer.grow(most)
    held = searched = 0  # bytes in the buffer; so many of them need not be looked at again
    in_pieces = False
    full = block_bytes  # so many are read before they are looked at
    damage: BadInput | None = None
    while True:
        try:
            got = 0 if damage else stream.readinto(memoryview(memory)[held:full])
        except BadInput as error:
            got, damage = 0, error
        held += got
        if got and held < full:
            continue
        if not held and not in_pieces and damage is None:
            return
        find = _first_separator if in_pieces else _last_separator
        end = find(memory, separator, searched, held)
        if end >= 0:
            block = Block(memoryview(memory)[:end], start, is_piece=in_pieces)
            used, in_pieces = end + length, False
        elif damage is not None:
            raise damage
        elif not got:
            block = Block(memoryview(memory)[:held], start, closed=False, is_piece=in_pieces)
            used, in_pieces = held, False
        elif in_pieces or held == most:
            used, in_pieces = held - length + 1, True  # a separator may begin in the last bytes
            block = Block(memoryview(memory)[:used], start, closed=False, is_piece=True, final=False)
        else:
            searched = max(0, held - length + 1)
            full = most
            continue
        yield block
        memory[: held - used] = memory[used:held]
        held -= used
        start += used
        searched = 0
        full = block_bytes if held < block_bytes else most


def pieces_of(block: Block, blocks: Iterator[Block]) -> Iterator[tuple[memoryview, bool]]:
    """(text, whether it is the last) of a record in pieces: `block` is the first, `blocks` has the others."""
    yield block.text, block.final
    while not block.final:
        block = next(blocks)
        yield block.text, block.final


def watched(
    blocks: Iterator[Block], stream: FileStream, seen: Callable[[Block, int], None]
) -> Iterator[Block]:
    """The blocks of a stream; seen(block, stream.used_bytes) is called before each is given."""
    for block in blocks:
        seen(block, stream.used_bytes)
        yield block


def _first_separator(buffer: bytearray, separator: bytes, searched: int, held: int) -> int:
    return buffer.find(separator, searched, held)


def _last_separator(buffer: bytearray, separator: bytes, searched: int, held: int) -> int:
    """Where the last separator in the buffer begins, -1 if there is none."""
    if overlaps_itself(separator):  # only a scan from the start of a record finds the right ones
        starts = _core.find_separators(memoryview(buffer)[:held], separator)
        return int(starts[-1]) if len(starts) else -1
    return buffer.rfind(separator, searched, held)


class FileRange:
    """Bytes [start, stop) of a file as a stream. A file that ends before `stop` is an error.

    path: what the file is called. seen(offset, bytes): is given what is read of the file.
    """

    def __init__(
        self,
        file: RandomFile,
        path: str,
        start: int,
        stop: int,
        seen: Callable[[int, memoryview], None] | None = None,
    ) -> None:
        self.path = path
        self._file = file
        file.expect(start, stop)
        self._start, self._place, self._stop = start, start, stop
        self._seen = seen

    @property
    def used_bytes(self) -> int:
        """See FileStream."""
        return self._place - self._start

    def readinto(self, buffer: memoryview) -> int:
        """See ByteStream."""
        room = min(len(buffer), self._stop - self._place)
        if room == 0:
            return 0
        with naming(self.path):
            got = self._file.readinto_at(self._place, buffer[:room])
        if not got:
            raise changed_while_read(self.path, f"ends at byte {self._place}")
        if self._seen is not None:
            self._seen(self._place, buffer[:got])
        self._place += got
        return got


def own_lines(file: RandomFile, path: str, size: int, start: int, stop: int) -> tuple[int, int]:
    """[begin, end) of the lines whose first byte lies in [start, stop) of a file of `size` bytes; empty if none does.

    The last one is whole, LF included. Memory is constant, however long lines are.
    """
    begin = 0 if start == 0 else _line_end(file, path, start - 1, size)
    if begin >= stop:
        return begin, begin
    return begin, _line_end(file, path, stop - 1, size)


def _line_end(file: RandomFile, path: str, place: int, size: int) -> int:
    """The end of the line that byte `place` lies in, its LF included."""
    buffer = bytearray(64 << 10)
    while place < size:
        with naming(path), memoryview(buffer) as view:
            got = file.readinto_at(place, view)
        if not got:
            raise changed_while_read(path, f"ends at byte {place}")
        found = buffer.find(b"\n", 0, got)
        if found >= 0:
            return min(size, place + found + 1)
        place += got
        if len(buffer) < _SCAN_BYTES:
            buffer = bytearray(_SCAN_BYTES)
    return size
