"""What a user can meet, each with the exit code of `python -m convert`; messages are one line.

2 bad arguments, 3 bad input data, 4 environment (space, permission, I/O), 5 a worker lost, unfit or out of memory,
6 refused (the output exists, another run is at work, the plan changed), 130 interrupted.
"""

# ruff: noqa: N818 - named for what is wrong: BadInput, WorkerLost
from __future__ import annotations

import errno
import os
import shutil
from concurrent.futures import BrokenExecutor

from corpus.errors import BadArgument, TokenmillError
from corpus.errors import BadInput as BadInput
from corpus.errors import naming as naming
from corpus.errors import printable as printable
from engines.errors import EngineFailure as EngineFailure
from engines.errors import WorkerLost as WorkerLost

ConvertError = TokenmillError  # the base of all packages' errors, as convert names it
UsageError = BadArgument


class StorageError(ConvertError):
    """The system refused to read or write: space, permission, a failing disk."""

    exit_code = 4


class Refused(ConvertError):
    """Going on would destroy or mix something; the message says what and which flag allows it."""

    exit_code = 6


class DataLost(ConvertError):
    """What was written differs from what is read back, and it can't be made again."""


class BrokenInvariant(ConvertError):
    """Counts that must agree do not: a bug of ours. Nothing is published."""


def exit_code_of(error: BaseException) -> int | None:
    """The exit code an error asks for, None for one that is a bug and deserves its traceback."""
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        return code
    if isinstance(error, OSError):
        return StorageError.exit_code
    if isinstance(error, ImportError):
        return UsageError.exit_code
    if isinstance(error, (MemoryError, BrokenExecutor)):
        return WorkerLost.exit_code
    return None


def _way_out(error: OSError, where: object) -> str:
    """What to do about it, where that is known."""
    if error.errno == errno.ENOSPC:
        free = _free_bytes(where)
        there = f" ({free:,} bytes are free there)" if free is not None else ""
        return f"{there}; free some space and run the same command again"
    if error.errno == errno.EDQUOT:
        return "; free some of your quota and run the same command again"
    if error.errno == errno.EFBIG:
        return "; raise the limit on the size of a file (ulimit -f) and run the same command again"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "; raise the limit on open files (ulimit -n) or lower --workers"
    if error.errno == errno.EAGAIN:
        return "; raise the limit on processes (ulimit -u) or lower --workers"
    if error.errno == errno.EIO:
        return "; check the disk, then run the same command again"
    if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
        return "; this file system has no locks, choose an --output on another"
    return ""


def _free_bytes(where: object) -> int | None:
    """How many bytes are free where a file lies, or was to lie."""
    place = str(where).split(" at byte ")[0] if where is not None else "."
    for path in (place, os.path.dirname(place) or "."):  # noqa: PTH120 - a path that may be anything
        try:
            return shutil.disk_usage(path).free
        except (OSError, ValueError):
            continue
    return None


def one_line(error: BaseException) -> str:
    """The message of an error as one line; an OSError says its reason and path."""
    if isinstance(error, OSError) and error.strerror:
        where = error.filename2 or error.filename
        message = f"{error.strerror} (errno {error.errno})"
        if where is not None:
            message = f"{where}: {message}"
        message += _way_out(error, where)
    elif isinstance(error, ImportError):
        missing = (
            "the core is not built" if "_core" in str(error) else f"{error.name or error} is not installed"
        )
        message = f"{missing}; install the package first: pip install . (in its folder)"
    elif isinstance(error, MemoryError):
        message = "out of memory; lower --workers or --text-chunk-bytes"
    else:
        message = str(error) or type(error).__name__
    return printable(message)
