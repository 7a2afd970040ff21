"""Outputs that would replace an input, or each other: refused before any work is done.

Two names are one file if they lead to one object (device and inode, so by hard links too) or, where there is none yet,
to one place. Devices and pipes are written to, not replaced, and may be named as often as one likes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bpe.errors import BadArgument

STANDARD: Final = "-"  # stdin among inputs, stdout among outputs


def check_outputs_apart(
    outputs: Iterable[tuple[str, str | Path | None]], inputs: Iterable[str | Path] = ()
) -> None:
    """Raise BadArgument for the first output that is an input or an output before it.

    outputs: (what names it, such as "--output", and its path; None: it is not written). inputs: files. "-" among them
    stands for stdout and stdin, which are known where the shell led them from or to a file.
    """
    names: dict[object, str] = {}
    for flag, path in outputs:
        if path is None or (target := _object(path, 1)) is None:
            continue
        name = "stdout" if path == STANDARD else f"{flag} {path}"
        other = names.setdefault(target, name)
        if other is not name:
            raise BadArgument(f"{other} and {name}: same file. Choose two different files.")
    for path in inputs:
        if name := names.get(_object(path, 0), ""):
            shown = "stdin" if path == STANDARD else f"the input {path}"
            raise BadArgument(f"{name}: same file as {shown}. Choose another output.")


def _object(path: str | Path, standard: int) -> object:
    """What tells the file from others; None if it is none that is replaced. standard: the number of stdin or stdout."""
    try:
        status = os.fstat(standard) if path == STANDARD else os.stat(path)  # noqa: PTH116 - many inputs
    except OSError:
        return None if path == STANDARD else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
