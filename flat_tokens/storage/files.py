"""Reading the files of a dataset that anybody may have made: regular files only, of bounded length, whole or
not at all.

A symbolic link in a dataset may lead out of it, so none is followed: the system refuses one that stands for a file
when that is opened (O_NOFOLLOW), which costs nothing; folders are looked at once, when the array in them is opened. The
dataset's own path may be a link, and the folders above it."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, cast

from flat_tokens.errors import RESTORE, DatasetError, damaged, printable

_FLAGS = os.O_RDONLY | os.O_NONBLOCK
READ_BYTES = 2**20  # of a file that is read from one end to the other
_LINK_ERRORS = (errno.ELOOP, errno.EMLINK)  # of O_NOFOLLOW: Linux and macOS; FreeBSD


class AbsentFileError(DatasetError):
    """A file of zarr chunks that is not there; zarr itself would read zeros, and 0 is a valid token."""


def open_regular(path: Path | str) -> tuple[io.FileIO, int]:
    """The file, open for reading, and its length in bytes; a pipe or device is refused and never waited
    for, a link never followed."""
    descriptor, size = _open(path)
    return os.fdopen(descriptor, "rb", buffering=0), size


def refuse_link(path: Path | str) -> None:
    """Raise DatasetError if a symbolic link is there. 1 us."""
    if os.path.islink(path):  # noqa: PTH114 - a Path costs as much again
        raise damaged(path, "symbolic links may lead out of the dataset", "Replace it with its target.")


def read_whole(path: Path, limit_bytes: int, follow_link: bool = False) -> bytes:
    """The bytes of a regular file of at most limit_bytes; DatasetError, or OSError from the machine. follow_link: for a
    file that the caller named, not one of a dataset."""
    return bytes(read_into(path, limit_bytes, ReadBuffer(), follow_link))


class ReadBuffer:
    """Memory for the bytes of a file, used for one after the other. As many are kept as threads read at once."""

    _kept: ClassVar[list[ReadBuffer]] = []

    def __init__(self) -> None:
        self._memory = bytearray()

    @classmethod
    def take(cls) -> ReadBuffer:
        """One that nobody uses, to be given back."""
        try:
            return cls._kept.pop()
        except IndexError:
            return cls()

    def give(self) -> None:
        """It is not in use any more."""
        self._kept.append(self)

    def room(self, size: int) -> memoryview:
        """`size` bytes of arbitrary content, those of the last call where they suffice."""
        if len(self._memory) < size:
            self._memory = bytearray(size + size // 4)  # the next file may be a little longer
        return memoryview(self._memory)[:size]


def read_into(
    path: Path | str, limit_bytes: int, buffer: ReadBuffer, follow_link: bool = False
) -> memoryview:
    """As read_whole, in the memory of `buffer`. Memory that was touched before takes half the time, and no file
    object saves 5 us."""
    descriptor, size = _open(path, follow_link)
    try:
        check_length(path, size, limit_bytes)
        data = buffer.room(size)
        fill_from(descriptor, data, 0, path)
        return data
    finally:
        os.close(descriptor)


def fill_from(descriptor: int, data: memoryview, offset: int, path: Path | str) -> None:
    """Fill `data` with what an opened file has from `offset` on; DatasetError if it ends before. path: its name."""
    size, done = len(data), 0
    while done < size:  # above 2 GiB a read is always short
        count = os.preadv(descriptor, [data[done:]], offset + done)
        if count == 0:
            raise damaged(path, ends_early(size - done))
        done += count


def read_part(file: BinaryIO, path: Path | str, offset: int, length: int) -> bytes | memoryview:
    """The bytes [offset, offset + length) of an opened file in memory of their own. Errors as fill_from."""
    data = os.pread(file.fileno(), length, offset)
    if len(data) == length:
        return data
    part = memoryview(bytearray(length))
    fill_from(file.fileno(), part, offset, path)
    return part


class RegularFile:
    """A regular file, opened; see places.File."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._file, self.size = open_regular(path)

    def part(self, offset: int, length: int) -> bytes | memoryview:
        """See File.part."""
        return read_part(self._file, self._path, offset, length)

    def parts(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | memoryview]:
        """See File.parts."""
        return [self.part(start, stop - start) for start, stop in ranges]

    def whole(self, buffer: ReadBuffer) -> memoryview:
        """See File.whole."""
        data = buffer.room(self.size)
        fill_from(self._file.fileno(), data, 0, self._path)
        return data

    def blocks(self, buffer: ReadBuffer) -> Iterator[memoryview]:
        """See File.blocks."""
        room = buffer.room(READ_BYTES)
        while count := self._file.readinto(room):
            yield room[:count]

    def reader(self) -> io.BufferedReader[Any]:
        """See File.reader."""
        return io.BufferedReader(cast(io.RawIOBase, self._file), 1 << 16)

    def __enter__(self) -> RegularFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def check_length(path: Path | str, size: int, limit_bytes: int) -> None:
    """Raise DatasetError if a file of `size` bytes is longer than any of its kind."""
    if size > limit_bytes:
        raise damaged(path, f"must have at most {limit_bytes} bytes (got {size})")


def absence(path: Path | str) -> str:
    """What is said of a file that is gone: of one of zarr chunks, what zarr would make of that."""
    name = os.path.basename(path)  # noqa: PTH119 - of a million files, perhaps
    if name.startswith(".") or name.endswith((".json", ".jsonl")):
        return f"missing. {RESTORE}"
    return f"missing, and zarr would read zeros instead. {RESTORE}"


def absent_chunk(index: int) -> str:
    """Return what is said of a zarr chunk that its shard lacks."""
    return f"zarr chunk {index} is missing from the shard, and zarr would read zeros instead. {RESTORE}"


def ends_early(missing_bytes: int) -> str:
    """Return what is said of a file that is too short."""
    return f"truncated: {missing_bytes} bytes are missing at the end"


def _open(path: Path | str, follow_link: bool = False) -> tuple[int, int]:
    try:
        descriptor = os.open(path, _FLAGS if follow_link else _FLAGS | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        raise AbsentFileError(f"{printable(str(path))}: {absence(path)}") from None
    except OSError as error:
        if error.errno in _LINK_ERRORS and not follow_link:
            refuse_link(path)
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise damaged(path, "not a regular file")
    return descriptor, status.st_size


def write_all(path: str | Path, data: bytes | bytearray | Iterable[bytes], flags: int) -> None:
    """Put all the bytes, or block after block, into a file, which is made if there is none. flags: os.O_TRUNC for
    nothing else in it, os.O_APPEND for the end. Plain calls of the system: `Path` and `open` took 0.1 ms. OSError
    passes through."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o666)
    try:
        for block in (data,) if isinstance(data, bytes | bytearray) else data:
            rest = memoryview(block)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)  # reports a full disk, or what a network's file system could not keep
