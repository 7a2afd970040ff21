"""Names in folders, also of network disks.

There an answer may be lost and the request be made again: what was done says then that it can't be (NFS before 4.1).
And an open file whose name is removed keeps one, `.nfs...`, until it is closed: its folder is not empty until then.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_STILL_OPEN: Final = ".nfs"  # how such a name begins
STILL_USED: Final = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)
_TRIES: Final = 6


def rename(source: str | Path, target: str | Path) -> None:
    """Give a file or folder another name, over what has it; FileNotFoundError only if it was not done."""
    status = os.lstat(source)
    try:
        os.replace(source, target)  # noqa: PTH105 - a Path costs more than the call
    except FileNotFoundError:
        if not has_name(status, target):
            raise


def has_name(status: os.stat_result, path: str | Path) -> bool:
    """Whether the file of this status is what lies at a path."""
    try:
        return os.path.samestat(status, os.lstat(path))
    except OSError:
        return False


def names_in(folder: Path) -> set[str]:
    """What a folder holds, without names that only open files have."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(_STILL_OPEN)}


def remove_empty(folder: Path) -> None:
    """Remove an empty folder, if there is one; files in it may have been closed just now, which takes a moment."""
    _remove(folder, os.rmdir)


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, if there is one."""
    _remove(folder, shutil.rmtree)


def _remove(folder: Path, by: Callable[[Path], None]) -> None:
    for turn in range(_TRIES):
        try:
            return by(folder)
        except FileNotFoundError:  # of the folder, or of what a request in it removed that was made again
            if not folder.exists():
                return
        except OSError as error:
            if turn == _TRIES - 1 or error.errno not in STILL_USED:
                raise
            time.sleep(0.01 * 2**turn)
