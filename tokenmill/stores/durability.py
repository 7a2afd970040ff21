"""Write files to disk so that they survive a power failure.

Written bytes stay in the page cache for up to half a minute. After a power failure the name of a file may exist
without its bytes. A `Syncer` forces files to disk in background threads while other work continues.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path

from tokenmill.errors import naming
from tokenmill.stores.names import write_whole
from tokenmill.stores.requests import start

THREADS = 4
_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_SYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def sync_in_background(place: object) -> Future[None]:
    """Start to sync the file system of a folder; do nothing for anything else, such as a place on a store.

    One call covers thousands of files, while each sync of a new file costs a commit of the file system. OSError names
    the folder.
    """
    future = Future[None]()
    if isinstance(place, Path):
        with suppress(RuntimeError, MemoryError):  # no more threads
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


class Syncer:
    """Syncs files in background threads until `wait`, which raises the first error: OSError with the path, or
    MemoryError.

    A file that could not be synced is deleted, because the system may have dropped its bytes while a second sync would
    report success.
    """

    def __init__(self) -> None:
        self._batches: deque[tuple[list[str | Path], bool]] = deque()
        self._running: list[Future[None]] = []
        self._error: OSError | None = None

    def add(self, paths: Iterable[str | Path], stays: bool = False) -> None:
        """Start to sync files, all in one thread. Missing files are ignored.

        stays: keep a file that could not be synced, because its readers recognize an incomplete end.
        """
        self._batches.append((list(paths), stays))
        self._running = [future for future in self._running if not future.done() or future.exception()]
        if len(self._running) < THREADS:
            with suppress(RuntimeError, MemoryError):  # no more threads: `wait` syncs the remaining files
                self._running.append(start(self._sync_all))

    def wait(self) -> None:
        """Return when all files are on disk."""
        self._sync_all()
        running, self._running = self._running, []
        for future in running:
            future.result()
        if self._error is not None:
            raise self._error

    def _sync_all(self) -> None:
        while True:
            try:
                paths, stays = self._batches.popleft()
            except IndexError:
                return
            for path in paths:
                try:
                    sync(path)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self._error = self._error or error
                    if not stays:
                        with suppress(OSError):
                            os.unlink(path)  # noqa: PTH108


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
