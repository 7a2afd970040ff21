"""The folder of temporary shards where it does not lie beside the output (`--scratch`): its place is noted in the
partial folder before it is made, so whoever takes that folder over finds it, and what is made is removed.

Its name is random: outputs of two machines may have the same path.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from convert.errors import StorageError
from tokenmill.stores.durability import write_lasting

NOTE_NAME = "scratch"
REMOVED = ".removed"  # behind the name of a folder, for the moment in which it is removed
_ENDING = ".shards"
_TRIES = 8


def check_scratch(folder: str | None) -> None:
    """StorageError if it is named but not there."""
    if folder is not None and not Path(folder).is_dir():
        if os.path.lexists(folder):
            raise StorageError(f"{folder}: not a folder. Choose another --scratch.")
        raise missing_folder(folder, "--scratch")


def missing_folder(folder: object, flag: str) -> StorageError:
    """Return the error for a folder that an option needs and that does not exist."""
    return StorageError(f"{folder}: no such folder. Create it, or choose another {flag}.")


def noted_scratch(root: Path) -> Path | None:
    """What a partial folder says of where its shards lie; None: in itself, or it says no such place."""
    try:
        path = Path(os.fsdecode((root / NOTE_NAME).read_bytes()))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    # What is removed there must be ours: of half a note, after a power loss, the folder around it would be left.
    return path if path.is_absolute() and path.name.endswith(_ENDING) else None


def note_scratch(root: Path, folder: str, name: str) -> Path:
    """A place of its own in `folder`, which is not made yet."""
    path = Path(folder).absolute() / f"{name}-{os.urandom(8).hex()}{_ENDING}"
    write_lasting(root / NOTE_NAME, [os.fsencode(path)])
    return path


def remove_folder(folder: Path) -> None:
    """Remove a folder and all in it, if there is one. The task of a worker that counts as lost may still write there:
    so it gets another name first, under which nobody looks for it; one that was left with that name is removed too."""
    aside = folder.with_name(folder.name + REMOVED)
    for turn in range(_TRIES):
        try:
            if aside.exists():
                shutil.rmtree(aside)
            folder.rename(aside)
        except FileNotFoundError:
            if not folder.exists() and not aside.exists():
                return
        except OSError:  # a file came into being, whose folder was found before
            if turn == _TRIES - 1:
                raise
            time.sleep(0.01 * 2**turn)
