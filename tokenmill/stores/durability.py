"""Write files to disk so that they survive a power failure.

Written bytes stay in the page cache for up to half a minute. After a power failure the name of a file may exist
without its bytes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path

from tokenmill.errors import naming
from tokenmill.stores.names import write_whole
from tokenmill.stores.requests import start

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def sync_in_background(place: object) -> Future[None]:
    """Start to sync the file system of a folder; do nothing for anything else, such as a place on a store.

    One call covers thousands of files, while each sync of a new file costs a commit of the file system. OSError names
    the folder.
    """
    future = Future[None]()
    if isinstance(place, Path):
        with suppress(OSError, MemoryError):  # no more threads
            return start(partial(_sync_file_system, place))
        _sync_file_system(place)
    future.set_result(None)
    return future


def _sync_file_system(folder: Path) -> None:
    with naming(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            if _LIBC.syncfs(descriptor):
                error = ctypes.get_errno()
                raise OSError(error, os.strerror(error))
        finally:
            os.close(descriptor)


def sync(path: str | Path) -> None:
    """Return when the bytes of a file, or the names in a folder, are on disk. OSErrors name the path.

    Network disks may not support this for folders, which is ignored.
    """
    with naming(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC or not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise
        finally:
            os.close(descriptor)


def write_lasting(path: Path, blocks: Iterable[bytes]) -> None:
    """Write a file that is whole or absent, also after a power failure. OSErrors name <path>.tmp."""
    write_whole(path, blocks, f"{path}.tmp", synced=True)


def sync_folders(root: Path) -> None:
    """Sync the names in a folder and in all folders below it."""
    for folder, _, _ in os.walk(root):
        sync(folder)
