"""A part of a file in memory, which moves over it.

Files are read by plain reads into a buffer that is kept: no page faults as with mmap, and no SIGBUS if a file
shrinks, which is an error that names it.
"""

from __future__ import annotations

import io
import os
from types import TracebackType

from convert.errors import BadInput, naming


class TextWindow:
    """Bytes [start, stop) of a file of `size` bytes; all offsets are from the beginning of the file.

    buffer: reused from window to window and grown as needed. A window is to be closed; views of it must be released
    before it moves.
    """

    def __init__(self, path: str, size: int, buffer: bytearray | None = None) -> None:
        self.path = path
        self.size = size
        self.start = self.stop = 0
        self._buffer = bytearray() if buffer is None else buffer
        self._file = io.FileIO(path)

    def __enter__(self) -> TextWindow:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def cover(self, start: int, stop: int) -> None:
        """Make the window hold at least [start, stop), which must lie in the file; what it held stays if it can."""
        if start < self.start or start > self.stop:
            self.start = self.stop = start
        if stop <= self.stop:
            return
        needed = stop - self.start
        if needed > len(self._buffer):
            # A little more, for what is read ahead. Far ahead is read in steps that grow, so this is seldom.
            self._buffer.extend(bytes(needed + needed // 16 - len(self._buffer)))
        self._file.seek(self.stop)
        with memoryview(self._buffer) as view:
            while self.stop < stop:
                with naming(self.path):
                    got = self._file.readinto(view[self.stop - self.start : needed])
                if not got:
                    raise BadInput(
                        f"{self.path} changed while it was read: it ends at byte {self.stop}, "
                        f"but had {self.size} bytes at first; convert it again when nothing writes to it"
                    )
                self.stop += got

    def actual_size(self) -> int:
        """The size of the file now."""
        return os.fstat(self._file.fileno()).st_size

    def view(self, start: int, stop: int) -> memoryview:
        """Bytes [start, stop) without a copy; valid until the window moves."""
        self.cover(start, stop)
        return memoryview(self._buffer)[start - self.start : stop - self.start]

    def find(self, needle: bytes, start: int, stop: int) -> int:
        """Where the first `needle` within [start, stop) begins, or -1."""
        if stop - start < len(needle):
            return -1
        self.cover(start, stop)
        place = self._buffer.find(needle, start - self.start, stop - self.start)
        return place if place < 0 else place + self.start

    def rfind(self, needle: bytes, start: int, stop: int) -> int:
        """Where the last `needle` within [start, stop) begins, or -1."""
        if stop - start < len(needle):
            return -1
        self.cover(start, stop)
        place = self._buffer.rfind(needle, start - self.start, stop - self.start)
        return place if place < 0 else place + self.start
