"""A folder for temporary files that exists only if it is used, and is gone afterwards.

A process that is killed leaves its folder behind; the next workspace at the same place removes it. Who is at work holds
a lock (flock) on a file in its folder, which the system lets go of when the process ends, however it ends: a folder
without a holder is nobody's. Folders without the file are left alone, as are those of other users.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from bpe.errors import EnvironmentFailure
from tokenmill.stores.names import remove_empty, rename

PREFIX: Final = ".bpe-counts-"
LOCK_NAME: Final = "lock"


class Workspace:
    """Used as a context. folder: where it is made; None: where the system keeps temporary files ($TMPDIR)."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._parent = Path(folder or tempfile.gettempdir())
        if not self._parent.is_dir():  # now, not when the memory is full
            raise EnvironmentFailure(
                f"{self._parent}: folder for temporary files does not exist. Create it first."
            )
        self._folder: Path | None = None
        self._lock = -1
        self._files = 0

    @property
    def folder(self) -> Path:
        """The folder, which is made now if it is not there; EnvironmentFailure if that can't be."""
        if self._folder is None:
            try:
                while self._folder is None:
                    self._make_folder()
            except OSError as error:
                raise EnvironmentFailure(
                    f"{self._parent}: cannot write temporary files ({error.strerror}). Choose another folder with "
                    "--temp-dir."
                ) from None
        return self._folder

    def new_file(self) -> Path:
        """The path of a file that does not exist yet; EnvironmentFailure if there can be none."""
        self._files += 1
        return self.folder / f"{self._files}.counts"

    def _make_folder(self) -> None:
        """Make the folder with its lock; nothing, if another process took it for left behind before it was locked."""
        folder = self._parent / f"{PREFIX}{os.urandom(8).hex()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            return
        with suppress(OSError):  # no locks here: then nobody else gets one to remove the folder by
            fcntl.flock(lock, fcntl.LOCK_SH)  # waits while another run removes it
        if not (folder / LOCK_NAME).exists():
            os.close(lock)
            return
        self._folder, self._lock = folder, lock

    def __enter__(self) -> Workspace:
        """Remove what processes left here that were killed."""
        with suppress(OSError):  # a place that can't be written is told when something is to be written
            for folder in list(self._parent.glob(f"{PREFIX}*")):
                _remove_if_left(folder)
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            _remove(self._folder, self._lock)
            self._folder, self._lock = None, -1


def _remove_if_left(folder: Path) -> None:
    """Remove a folder that no process holds and that is ours."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    try:
        lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        with suppress(OSError):
            folder.rmdir()  # killed before there was a lock; one that is not empty stays
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return  # its holder lives, or there are no locks here
    _remove(folder, lock)


def _remove(folder: Path, lock: int) -> None:
    """Remove a folder, the lock last, and close that: what is killed meanwhile is removed by the next one.

    It gets another name first: a worker that counts as lost may still be about to write into it.
    """
    removed = folder.with_name(f"{folder.name}.removed")
    with suppress(OSError):
        rename(folder, removed)
        folder = removed
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if path.name != LOCK_NAME:
                path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
    with suppress(OSError):
        remove_empty(folder)  # a network disk kept the lock's name
