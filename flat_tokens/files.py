"""Reading the files of a dataset that anybody may have made: regular files only, of bounded length, whole or
not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from flat_tokens.errors import DatasetError, printable


class AbsentFileError(DatasetError):
    """A file of zarr chunks that is not there; zarr itself would read zeros, and 0 is a valid token."""


def open_regular(path: Path) -> tuple[BinaryIO, int]:
    """The file, open for reading, and its length in bytes; a pipe or device is refused and never waited
    for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise AbsentFileError(
            f"{printable(str(path))}: not there; zarr would read it as zeros. Restore it or convert again"
        ) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise DatasetError(f"{printable(str(path))}: not a regular file; restore it or convert again")
    return os.fdopen(descriptor, "rb", buffering=0), status.st_size


def read_whole(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a regular file of at most limit_bytes; DatasetError, or OSError from the machine."""
    file, size = open_regular(path)
    with file:
        if size > limit_bytes:
            raise DatasetError(
                f"{printable(str(path))}: {size} bytes, at most {limit_bytes} are expected; "
                "restore it or convert again"
            )
        return _read_exactly(file, size, path)


def _read_exactly(file: BinaryIO, count: int, path: Path) -> bytes:
    data = file.read(count)
    while len(data) < count:  # unbuffered reads may be short, above 2 GiB they always are
        more = file.read(count - len(data))
        if not more:
            raise DatasetError(
                f"{printable(str(path))}: ends {count - len(data)} bytes early; restore it or convert again"
            )
        data += more
    return data
