"""Where the documents of a part of a file lie.

A document starts at byte 0 and after each separator, as `bytes.split` finds separators: from left to right, not
overlapping. A part [start, stop) owns the documents whose first byte lies in it; the last of them may end far beyond
`stop`. A separator at the very end of the file starts no further document. Every byte of a file belongs to exactly
one document or separator, whatever the parts, and `tests/convert/test_cut.py` holds that against `bytes.split`.

Separators that overlap themselves ("aa", "\\n\\n") need a place from which a scan is in step with the scan from
byte 0. An occurrence that no other occurrence reaches into from the left is always found by it, so the search goes
back from one overlapping occurrence to the next until there is such a one: work is linear in that run, and for
other separators there is nothing to do, since occurrences never meet.

Files are read by plain reads into a buffer that is kept: no page faults as with mmap, and no SIGBUS if a file
shrinks, which is an error that names it.
"""

from __future__ import annotations

import io
import os
from types import TracebackType

from convert.errors import BadInput

# How much further to read at a time for the end of a document that goes on beyond the part: most are shorter.
READ_AHEAD_BYTES = 64 << 10


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
            # Half as much again: a document of many megabytes is read ahead in steps that grow with it.
            self._buffer.extend(bytes(needed + needed // 2 - len(self._buffer)))
        self._file.seek(self.stop)
        with memoryview(self._buffer) as view:
            while self.stop < stop:
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


def overlaps_itself(separator: bytes) -> bool:
    """Whether two occurrences can share bytes: "aa" and "aba" can, "<|endoftext|>" cannot."""
    return any(separator.startswith(separator[shift:]) for shift in range(1, len(separator)))


def own_documents(window: TextWindow, separator: bytes, start: int, stop: int) -> tuple[int, int] | None:
    """[begin of the first, end of the last) document that starts in [start, stop); None if none does.

    Between them lie whole documents with separators in between. Reads from `start` less the separator's length to
    the end of the last document.
    """
    stop = min(stop, window.size)
    if start >= stop:
        return None
    first = 0 if start == 0 else _first_start(window, separator, start, stop)
    if first < 0:
        return None
    last = _last_start(window, separator, first, stop)
    return first, _document_end(window, separator, last)


def _first_start(window: TextWindow, separator: bytes, start: int, stop: int) -> int:
    """The first document start in [start, stop), start > 0; -1 if there is none."""
    length = len(separator)
    scan = max(0, start - length)
    window.cover(scan, stop)
    if overlaps_itself(separator):
        scan = _in_step(window, separator, scan, 0)
    place = window.find(separator, scan, stop - 1)
    while 0 <= place < start - length:
        place = window.find(separator, place + length, stop - 1)
    return place + length if place >= 0 else -1


def _last_start(window: TextWindow, separator: bytes, first: int, stop: int) -> int:
    """The last document start in [first, stop), given that `first` is one."""
    place = window.rfind(separator, first, stop - 1)
    if place < 0:
        return first
    if overlaps_itself(separator):
        place = _in_step(window, separator, place, first)
        while (following := window.find(separator, place + len(separator), stop - 1)) >= 0:
            place = following
    return place + len(separator)


def _document_end(window: TextWindow, separator: bytes, start: int) -> int:
    """Where the document that starts at `start` ends: at the next separator or at the end of the file."""
    seen = start
    stop = max(window.stop, start)
    while True:
        stop = min(window.size, max(stop, seen))
        place = window.find(separator, seen, stop)
        if place >= 0:
            return place
        if stop == window.size:
            return stop
        # A separator may begin in what was seen: its last bytes are looked at again.
        seen = max(seen, stop - len(separator) + 1)
        stop += max(READ_AHEAD_BYTES, stop - start)


def _in_step(window: TextWindow, separator: bytes, place: int, floor: int) -> int:
    """The greatest place at or before `place` from which a scan finds what the scan from `floor` finds.

    `floor` is itself such a place: the beginning of the file or of a document.
    """
    while place > floor:
        reach = max(floor, place - len(separator) + 1)
        if reach < window.start:
            # Overlapping occurrences may go on far to the left: step back a block at a time, not a byte.
            window.cover(max(0, reach - READ_AHEAD_BYTES), min(window.size, place + len(separator)))
        before = window.rfind(separator, reach, min(window.size, place + len(separator) - 1))
        if before < 0:
            break
        place = before
    return place
