"""Files written whole, renamed and removed, also on network disks.

A client of NFS before 4.1 that loses the answer to a request sends it again. The repeated request then fails because
the first one succeeded. Removing an open file leaves a name `.nfs...` until it is closed, so its folder is not empty.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tokenmill.errors import naming
from tokenmill.stores.errors import already_there
from tokenmill.stores.store import Bytes

_STILL_OPEN: Final = ".nfs"
STILL_USED: Final = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)
_TRIES: Final = 6


def write_whole(
    path: str | Path, blocks: Iterable[Bytes], temporary: str | Path, *, synced: bool, if_absent: bool = False
) -> None:
    """Write a file as `temporary` in the same folder, then rename it, so that it is never visible in part.

    synced: force its bytes to disk before the rename, so that this also holds after a power failure.
    if_absent: raise AlreadyThere if `path` exists. Only one of several concurrent writers succeeds.
    """
    try:
        with naming(temporary), open(temporary, "wb", buffering=1 << 17) as file:  # noqa: PTH123 - speed
            file.writelines(blocks)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        if not if_absent or not _link(temporary, path):
            rename(temporary, path)
    finally:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108


def _link(source: str | Path, target: str | Path) -> bool:
    """Create a hard link. Without hard links, reserve the name for a rename and return False."""
    try:
        os.link(source, target)
        return True
    except FileExistsError:
        if has_name(os.lstat(source), target):
            return True
        raise already_there(str(target)) from None
    except OSError:  # EPERM, ENOTSUP or EMLINK, depending on the file system
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            return False
        except FileExistsError:
            raise already_there(str(target)) from None


def rename(source: str | Path, target: str | Path) -> None:
    """Rename a file or folder, replacing `target`. FileNotFoundError means that it was not done."""
    status = os.lstat(source)
    try:
        os.replace(source, target)  # noqa: PTH105 - a Path costs more than the call
    except FileNotFoundError:
        if not has_name(status, target):
            raise


def has_name(status: os.stat_result, path: str | Path) -> bool:
    """Return whether the file with this status is the one at `path`."""
    try:
        return os.path.samestat(status, os.lstat(path))
    except OSError:
        return False


def names_in(folder: Path) -> set[str]:
    """Return the names in a folder, except `.nfs` names of removed files."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(_STILL_OPEN)}


def remove_empty(folder: Path) -> None:
    """Remove an empty folder if it exists. Waits a moment for files that were just closed."""
    _remove(folder, os.rmdir)


def remove_empty_folders(folder: Path) -> None:
    """Remove the empty folders inside a folder, at all depths."""
    for found, _, _ in os.walk(folder, topdown=False):
        if found != str(folder):
            with suppress(OSError):  # not empty
                os.rmdir(found)  # noqa: PTH106


def remove_tree(folder: Path) -> None:
    """Remove a folder and its content if it exists."""
    _remove(folder, shutil.rmtree)


def _remove(folder: Path, remove: Callable[[Path], None]) -> None:
    for attempt in range(_TRIES):
        try:
            return remove(folder)
        except FileNotFoundError:  # the folder, or a file in it that a repeated request had removed
            if not folder.exists():
                return
        except OSError as error:
            if attempt == _TRIES - 1 or error.errno not in STILL_USED:
                raise
            time.sleep(0.01 * 2**attempt)
