"""Writing one part of a shard, and the digests of its blocks beside it."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convert.errors import BrokenInvariant, naming
from convert.shards import shard as shard_module
from convert.shards.shard import NOWHERE, Place
from tokenmill.inputs import _core
from tokenmill.inputs.digest import digest_bytes
from tokenmill.stores.names import rename

FLUSH_BYTES = 128 << 10
_MOVED_BYTES = 4 << 20


class PartWriter:
    """One part of a shard: in memory until there is much of it, then in its file.

    spares: names of files to write over, which the attempt's parts take from.
    """

    def __init__(self, folder: Path, name: str, spares: list[str]) -> None:
        self._name = name
        self._folder, self._spares = folder, spares
        self._path = f"{folder}/{name}"
        self._file: io.FileIO | None = None
        self._waiting = bytearray()
        self._digests = _BlockDigests()
        self._written_bytes = 0
        self._mark = (0, self._digests)

    def add(self, values: NDArray[Any]) -> None:
        """Put the items behind the others. Copies."""
        if values.nbytes >= FLUSH_BYTES:
            self._flush()
            self._write(values.data.cast("B"))
        elif values.size:
            self._waiting += values.data.cast("B")
            if len(self._waiting) >= FLUSH_BYTES:
                self._flush()

    def mark(self) -> None:
        """Remember this place for `move_marked`."""
        self._flush()
        self._mark = self._written_bytes, self._digests.copy()

    def move_marked(self, to: PartWriter) -> None:
        """Take what came since `mark` out of this part and put it behind the items of another."""
        self._flush()
        stop = self._written_bytes
        place, self._digests = self._mark
        self._written_bytes = place
        if stop == place or self._file is None:
            return
        with naming(self._path):
            for start in range(place, stop, _MOVED_BYTES):
                block = np.empty(min(_MOVED_BYTES, stop - start), dtype=np.uint8)
                if os.preadv(self._file.fileno(), [block.data], start) != len(block):
                    raise BrokenInvariant(f"{self._path}: shorter than the bytes written to it")
                to.add(block)
            self._file.seek(place)
            self._file.truncate()

    def drop_marked(self) -> None:
        """Take what came since `mark` out of this part."""
        self._flush()
        self._written_bytes, self._digests = self._mark
        if self._file is not None:
            with naming(self._path):
                self._file.seek(self._written_bytes)
                self._file.truncate()

    def take_small(self) -> bytes:
        """All there is, if nothing of it is in the file; then it is left to the caller. Else nothing."""
        if self._written_bytes:
            return b""
        data, self._waiting = bytes(self._waiting), bytearray()
        self._digests.update(memoryview(data))
        return data

    def digests(self) -> bytes:
        """Of what is in the file, or was taken: the XXH64 of each block, end to end."""
        return self._digests.all()

    def finish(self) -> Place:
        """Complete the file, if there is one; where the part lies."""
        self._flush()
        if self._file is None:
            return NOWHERE
        if not self._written_bytes:  # what was in it for a moment was dropped or moved
            self.discard()
            return NOWHERE
        with naming(self._path):
            self._file.truncate(self._written_bytes)  # it may have been longer
            self._file.close()
        self._file = None
        return self._name, 0

    def discard(self) -> None:
        """Remove what was not finished: on a full disk its space is needed to go on."""
        if self._file is not None:
            self._file.close()
            self._file = None
            with suppress(FileNotFoundError):
                os.unlink(self._path)  # noqa: PTH108

    def _flush(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, bytearray()
            self._write(memoryview(waiting))

    def _write(self, view: memoryview) -> None:
        with naming(self._path):
            if self._file is None:
                self._file = self._spare_file() or _new_file(self._path)
            self._digests.update(view)
            self._written_bytes += view.nbytes
            while view.nbytes:
                view = view[self._file.write(view) :]

    def _spare_file(self) -> io.FileIO | None:
        """A spare under this part's name, whatever it holds; None if there is none or another attempt has it."""
        while self._spares:
            with suppress(FileNotFoundError):
                rename(f"{self._folder}/{self._spares.pop()}", self._path)
                return io.FileIO(os.open(self._path, os.O_RDWR), "r+")
        return None


class _BlockDigests:
    """The XXH64 of each block of the bytes that come."""

    def __init__(self) -> None:
        self._done = bytearray()
        self._open, self._open_bytes = _core.Xxh64(), 0

    def update(self, view: memoryview) -> None:
        block_bytes = shard_module.DIGEST_BLOCK_BYTES
        while view.nbytes:
            own = view[: block_bytes - self._open_bytes]
            self._open.update(own)
            self._open_bytes += own.nbytes
            view = view[own.nbytes :]
            if self._open_bytes == block_bytes:
                self._done += digest_bytes(self._open)
                self._open, self._open_bytes = _core.Xxh64(), 0

    def copy(self) -> _BlockDigests:
        twin = _BlockDigests()
        twin._done, twin._open, twin._open_bytes = self._done[:], self._open.copy(), self._open_bytes
        return twin

    def all(self) -> bytes:
        return bytes(self._done) + (digest_bytes(self._open) if self._open_bytes else b"")


def _new_file(path: str) -> io.FileIO:
    """A file of this name, which must not exist."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    return io.FileIO(os.open(path, flags, 0o666), "r+")
