"""Files of a dataset from any origin: only regular files of bounded length are read, whole or not at all.

A symbolic link may lead out of a dataset, so none is followed. The system refuses to open one (O_NOFOLLOW); folders are
checked when an array is opened. The path of the dataset itself may contain links.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from flat_tokens.errors import RESTORE, DatasetError, damaged, printable

READ_BYTES = 2**20  # of a file that is read from one end to the other
_FLAGS = os.O_RDONLY | os.O_NONBLOCK
_LINK_ERRORS = (errno.ELOOP, errno.EMLINK)  # of O_NOFOLLOW: Linux and macOS; FreeBSD


class AbsentFileError(DatasetError):
    """A missing file. zarr reads zeros for missing Zarr chunks, and 0 is a valid token."""


class RegularFile:
    """An opened regular file of `size` bytes. A context, which closes it; so does the last reference.

    Pipes and devices are rejected without waiting. follow_link: for a file that the user named, which is not part of a
    dataset. Raise DatasetError, AbsentFileError for a missing file, and OSError of the machine."""

    def __init__(self, path: Path | str, follow_link: bool = False) -> None:
        self._path = path
        try:
            self.descriptor = os.open(path, _FLAGS if follow_link else _FLAGS | os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            raise AbsentFileError(f"{printable(str(path))}: {absence(path)}") from None
        except OSError as error:
            if error.errno in _LINK_ERRORS and not follow_link:
                refuse_link(path)
            raise
        status = os.fstat(self.descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise damaged(path, "not a regular file")
        self.size = status.st_size

    def part(self, offset: int, length: int) -> bytes:
        """The bytes [offset, offset + length). Raise DatasetError if the file ends before."""
        data = os.pread(self.descriptor, length, offset)
        while len(data) < length:  # above 2 GiB a read is always short
            more = os.pread(self.descriptor, length - len(data), offset + len(data))
            if not more:
                raise damaged(self._path, ends_early(length - len(data)))
            data += more
        return data

    def blocks(self) -> Iterator[bytes]:
        """All bytes in blocks."""
        for offset in range(0, self.size, READ_BYTES):
            yield self.part(offset, min(READ_BYTES, self.size - offset))

    def __enter__(self) -> RegularFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.__del__()

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        descriptor = self.__dict__.pop("descriptor", None)
        if descriptor is not None:
            close(descriptor)


def refuse_link(path: object) -> None:
    """Raise DatasetError if a path is a symbolic link. Stores have none. 1 us."""
    if isinstance(path, Path | str) and os.path.islink(path):  # noqa: PTH114 - a Path costs as much again
        raise damaged(path, "symbolic links may lead out of the dataset", "Replace it with its target.")


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


def ends_early(missing_bytes: int) -> str:
    """The error text for a file that is too short."""
    return f"truncated: {missing_bytes} bytes are missing at the end"
