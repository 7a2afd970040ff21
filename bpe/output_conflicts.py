"""Check that outputs replace neither an input nor each other, before any work is done.

Two paths are the same file if device and inode match (so hard links are caught) or, for files that do not exist yet, if
they resolve to the same path. Devices and pipes are written to, not replaced, and may appear several times.
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
    """Raise BadArgument for the first output that is also an input or an earlier output.

    outputs: pairs of the option's name, such as "--output", and its path (None: not written). "-" is stdout.
    inputs: paths. "-" is stdin.

    Standard streams are compared too if the shell redirects them from or to a file.
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
    """Return the identity of a file, or None for one that is never replaced.

    standard: file descriptor that "-" stands for.
    """
    try:
        status = os.fstat(standard) if path == STANDARD else os.stat(path)  # noqa: PTH116 - many inputs
    except OSError:
        return None if path == STANDARD else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
