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
    descriptor, size = _open(path)
    return os.fdopen(descriptor, "rb", buffering=0), size


def read_whole(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a regular file of at most limit_bytes; DatasetError, or OSError from the machine."""
    descriptor, size = _open(path)
    try:  # without a file object: it would cost 5 us
        if size > limit_bytes:
            raise DatasetError(
                f"{printable(str(path))}: {size} bytes, at most {limit_bytes} are expected; "
                "restore it or convert again"
            )
        data = os.read(descriptor, size)
        while len(data) < size:  # above 2 GiB a read is always short
            more = os.read(descriptor, size - len(data))
            if not more:
                raise DatasetError(
                    f"{printable(str(path))}: ends {size - len(data)} bytes early; restore it or convert again"
                )
            data += more
        return data
    finally:
        os.close(descriptor)


def _open(path: Path) -> tuple[int, int]:
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
    return descriptor, status.st_size
