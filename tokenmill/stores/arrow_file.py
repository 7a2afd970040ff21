"""A RandomFile as Arrow reads files, with `read` and `seek`."""

from __future__ import annotations

import io

from tokenmill.stores.files import RandomFile, read_at


class ArrowFile(io.RawIOBase):
    """Reads `file`, which the caller closes."""

    def __init__(self, file: RandomFile) -> None:
        self._file, self._offset = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._file.size}[whence]
        self._offset = base + offset
        return self._offset

    def tell(self) -> int:
        return self._offset

    def read(self, size: int | None = -1) -> bytes:
        """Return `size` bytes, or all to the end if `size` is None or negative."""
        rest = max(0, self._file.size - self._offset)
        data = read_at(self._file, self._offset, rest if size is None or size < 0 else min(size, rest))
        self._offset += len(data)
        return bytes(data)
