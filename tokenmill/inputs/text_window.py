"""A part of a file in memory, which moves over it.

Files are read by plain reads into a buffer that is kept: no page faults as with mmap, and no SIGBUS if a file
shrinks, which is an error that names it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from tokenmill.errors import naming
from tokenmill.inputs.buffers import GrowingBuffer
from tokenmill.inputs.errors import changed_while_read
from tokenmill.inputs.source_list import Source


class TextWindow:
    """Bytes [start, stop) of a source; all offsets are from the beginning of the file.

    buffer: reused from window to window and grown to the longest part that was asked for at once. seen(offset, bytes)
    is called for whatever is read from the file. A window is to be closed.
    """

    def __init__(
        self,
        source: Source,
        buffer: GrowingBuffer | None = None,
        seen: Callable[[int, memoryview], None] | None = None,
    ) -> None:
        self.path = source.shown
        self.size = source.size_bytes
        self.start = self.stop = 0
        self._buffer = GrowingBuffer() if buffer is None else buffer
        self._seen = seen
        self.file = source.open()

    def __enter__(self) -> TextWindow:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The file is not read any more."""
        self.file.close()

    def cover(self, start: int, stop: int) -> None:
        """Make the window hold at least [start, stop), which must lie in the file; what it held stays if there is room.

        FatalInput if the file ends before `stop`; an OSError names the file and the byte.
        """
        if start < self.start or start > self.stop:
            self.start = self.stop = start
        if stop <= self.stop:
            return
        if stop - self.start > len(self._buffer.memory):
            self._make_room(start, stop)
        room = memoryview(self._buffer.memory)[: stop - self.start]
        while self.stop < stop:
            place = self.stop - self.start
            with naming(f"{self.path} at byte {self.stop}"):
                got = self.file.readinto_at(self.stop, room[place:])
            if not got:
                raise changed_while_read(self.path, f"ends at byte {self.stop}, had {self.size} bytes")
            if self._seen is not None:
                self._seen(self.stop, room[place : place + got])
            self.stop += got

    def _make_room(self, start: int, stop: int) -> None:
        """Let go of what lies before `start`, and grow the buffer if [start, stop) still does not fit."""
        kept = self.stop - start
        view = memoryview(self._buffer.memory)
        view[:kept] = view[start - self.start : self.stop - self.start]
        self.start = start
        needed = stop - start
        if needed > len(self._buffer.memory):
            # A little more, for what is read ahead. Far ahead is read in steps that grow, so this is seldom.
            self._buffer.grow(needed + needed // 16, kept)

    def expect(self, start: int, stop: int) -> None:
        """See RandomFile."""
        self.file.expect(start, stop)

    def status(self) -> os.stat_result | None:
        """The file's size and times now; of the very file that is open, whatever its path has come to name. None: an
        object, see RandomFile."""
        return self.file.status()

    def view(self, start: int, stop: int) -> memoryview:
        """Bytes [start, stop) without a copy; valid until the window moves."""
        self.cover(start, stop)
        return memoryview(self._buffer.memory)[start - self.start : stop - self.start]

    def find(self, needle: bytes, start: int, stop: int) -> int:
        """Where the first `needle` within [start, stop) begins, or -1."""
        if stop - start < len(needle):
            return -1
        self.cover(start, stop)
        place = self._buffer.memory.find(needle, start - self.start, stop - self.start)
        return place if place < 0 else place + self.start

    def rfind(self, needle: bytes, start: int, stop: int) -> int:
        """Where the last `needle` within [start, stop) begins, or -1."""
        if stop - start < len(needle):
            return -1
        self.cover(start, stop)
        place = self._buffer.memory.rfind(needle, start - self.start, stop - self.start)
        return place if place < 0 else place + self.start
