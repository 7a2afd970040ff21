"""A file of any store as Arrow reads one: with a position, by `read` and `seek`."""

from __future__ import annotations

import io

from tokenmill.stores.files import RandomFile


class ArrowFile(io.RawIOBase):
    """Reads from `file`, which stays its owner's to close."""

    def __init__(self, file: RandomFile) -> None:
        self._file, self._place = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size}[whence]
        self._place = base + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        """`size` bytes, fewer only at the end; all to the end for -1 or None."""
        rest = max(0, self._file.size - self._place)
        wanted = rest if size is None or size < 0 else min(size, rest)
        buffer = bytearray(wanted)
        view, filled = memoryview(buffer), 0
        while filled < wanted and (got := self._file.readinto_at(self._place + filled, view[filled:])):
            filled += got
        self._place += filled
        return bytes(view[:filled])
