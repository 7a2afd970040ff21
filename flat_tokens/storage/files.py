"""Files of a dataset from any origin: only regular files of bounded length are read, whole or not at all.

A symbolic link may lead out of a dataset, so none is followed. The system refuses to open one (O_NOFOLLOW); folders are
checked when an array is opened. The path of the dataset itself may contain links.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from flat_tokens.errors import RESTORE, DatasetError, damaged, printable

_FLAGS = os.O_RDONLY | os.O_NONBLOCK
READ_BYTES = 2**20  # of a file that is read from one end to the other
_LINK_ERRORS = (errno.ELOOP, errno.EMLINK)  # of O_NOFOLLOW: Linux and macOS; FreeBSD


class AbsentFileError(DatasetError):
    """A missing file. zarr reads zeros for missing Zarr chunks, and 0 is a valid token."""


def open_regular(path: Path | str) -> tuple[io.FileIO, int]:
    """Open a file for reading, and return its length. Pipes and devices are rejected without waiting, and links are not
    followed."""
    descriptor, size = open_descriptor(path)
    return os.fdopen(descriptor, "rb", buffering=0), size


def refuse_link(path: Path | str) -> None:
    """Raise DatasetError if `path` is a symbolic link. 1 us."""
    if os.path.islink(path):  # noqa: PTH114 - a Path costs as much again
        raise damaged(path, "symbolic links may lead out of the dataset", "Replace it with its target.")


def read_whole(path: Path, limit_bytes: int, follow_link: bool = False) -> bytes:
    """The bytes of a regular file of at most limit_bytes. Raise DatasetError, or OSError of the machine.

    follow_link: for a file that the user named, which is not part of a dataset."""
    return bytes(read_into(path, limit_bytes, ReadBuffer(), follow_link))


class ReadBuffer:
    """Reusable memory for the bytes of a file. As many are kept as threads read at once."""

    _kept: ClassVar[list[ReadBuffer]] = []

    def __init__(self) -> None:
        self._memory = bytearray()

    @classmethod
    def take(cls) -> ReadBuffer:
        """Acquire a free buffer. Release it with `give`."""
        try:
            return cls._kept.pop()
        except IndexError:
            return cls()

    def give(self) -> None:
        """Release the buffer."""
        self._kept.append(self)

    def room(self, size: int) -> memoryview:
        """`size` bytes of arbitrary content, in the memory of the previous call if it suffices."""
        if len(self._memory) < size:
            self._memory = bytearray(size + size // 4)  # the next file may be a little longer
        return memoryview(self._memory)[:size]


def read_into(
    path: Path | str, limit_bytes: int, buffer: ReadBuffer, follow_link: bool = False
) -> memoryview:
    """As read_whole, in the memory of `buffer`. Memory that was touched before takes half the time."""
    descriptor, size = open_descriptor(path, follow_link)
    try:
        check_length(path, size, limit_bytes)
        data = buffer.room(size)
        fill_from(descriptor, data, 0, path)
        return data
    finally:
        os.close(descriptor)


def fill_from(descriptor: int, data: memoryview, offset: int, path: Path | str) -> None:
    """Fill `data` from `offset` of an opened file. Raise DatasetError, which names `path`, if the file ends before."""
    size, done = len(data), 0
    while done < size:  # above 2 GiB a read is always short
        count = os.preadv(descriptor, [data[done:]], offset + done)
        if count == 0:
            raise damaged(path, ends_early(size - done))
        done += count


def read_part(descriptor: int, path: Path | str, offset: int, length: int) -> bytes | memoryview:
    """The bytes [offset, offset + length) of an opened file in new memory. Errors as fill_from."""
    data = os.pread(descriptor, length, offset)
    if len(data) == length:
        return data
    part = memoryview(bytearray(length))
    fill_from(descriptor, part, offset, path)
    return part


class RegularFile:
    """An opened regular file of `size` bytes. A context, which closes it."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._file, self.size = open_regular(path)

    def part(self, offset: int, length: int) -> bytes | memoryview:
        """The bytes [offset, offset + length). Raise DatasetError if the file ends before."""
        return read_part(self._file.fileno(), self._path, offset, length)

    def whole(self, buffer: ReadBuffer) -> memoryview:
        """All bytes, perhaps in `buffer`."""
        data = buffer.room(self.size)
        fill_from(self._file.fileno(), data, 0, self._path)
        return data

    def blocks(self, buffer: ReadBuffer) -> Iterator[memoryview]:
        """All bytes in blocks. A block may overwrite the previous one."""
        room = buffer.room(READ_BYTES)
        while count := self._file.readinto(room):
            yield room[:count]

    def __enter__(self) -> RegularFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def check_length(path: Path | str, size: int, limit_bytes: int) -> None:
    """Raise DatasetError if a file has more than limit_bytes."""
    if size > limit_bytes:
        raise damaged(path, f"must have at most {limit_bytes} bytes (got {size})")


def absence(path: Path | str) -> str:
    """The error text for a missing file. For Zarr chunks it says that zarr would read zeros."""
    name = os.path.basename(path)  # noqa: PTH119 - of a million files, perhaps
    if name.startswith(".") or name.endswith((".json", ".jsonl")):
        return f"missing. {RESTORE}"
    return f"missing, and zarr would read zeros instead. {RESTORE}"


def absent_chunk(index: int) -> str:
    """The error text for a Zarr chunk that its shard lacks."""
    return f"zarr chunk {index} is missing from the shard, and zarr would read zeros instead. {RESTORE}"


def ends_early(missing_bytes: int) -> str:
    """The error text for a file that is too short."""
    return f"truncated: {missing_bytes} bytes are missing at the end"


def open_descriptor(path: Path | str, follow_link: bool = False) -> tuple[int, int]:
    """Open a file as `open_regular` does. Return its descriptor and its length."""
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
    """Write bytes or blocks to a file, which is created if needed. flags: os.O_TRUNC to replace its content,
    os.O_APPEND to extend it. System calls, because `Path` and `open` take 0.1 ms. OSError passes through."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o666)
    try:
        for block in (data,) if isinstance(data, bytes | bytearray) else data:
            rest = memoryview(block)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)  # reports a full disk, and lost writes of a network file system
