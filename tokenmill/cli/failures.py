"""What ended a command, told in one line, and the exit code it ends with.

Errors of the packages carry theirs. Those of the system and of Python have: 2 a package that is not installed, 4 the
machine (space, permission, I/O), 5 memory or a worker lost, 130 interrupted. All others are bugs: exit code 1, the
traceback and a request to report it.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import traceback
from concurrent.futures import BrokenExecutor
from contextlib import suppress

from tokenmill.cli.standard_streams import complain
from tokenmill.inputs.errors import TokenmillError, printable
from tokenmill.stores.errors import without_panic

MACHINE, MEMORY = 4, 5
_WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
STDOUT = "stdout"  # as the name of a file in an OSError
_INTERRUPTED = 128 + signal.SIGINT
_READER_GONE = 128 + 13  # as shells say SIGPIPE, which Windows has no number for


def ended_by(
    error: BaseException, debug: bool, *, more: str = "", with_less_memory: str = "", output: object = None
) -> int:
    """Report the error that ended the command and return the exit code.

    debug: show the traceback of a user's error too. more: appended to the message. with_less_memory: advice where
    memory was short. output: the file that a failed write was for, where the system did not name one.
    """
    error = without_panic(error)
    code = exit_code_of(error)
    if isinstance(error, OSError) and error.errno in _WRITE_ERRORS and error.filename is None:
        error.filename = output
    if code is None or debug:
        with suppress(OSError, ValueError, AttributeError):  # stderr is full, closed or absent
            traceback.print_exception(error)
    line = one_line(error)
    if code is None:
        complain(f"{line}{more}; this is a bug in tokenmill: please report it with the traceback above")
        return 1
    if isinstance(error, (MemoryError, BrokenExecutor)) and not isinstance(error, TokenmillError):
        line += f"; {with_less_memory}" if with_less_memory else ""
    complain(line + more)
    return code


def reader_gone() -> int:
    """The exit code where whoever read stdout has gone, which is no error."""
    # Or the interpreter would flush into it once more at its end, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _READER_GONE


def exit_code_of(error: BaseException) -> int | None:
    """The exit code an error asks for, None for one that is a bug and deserves its traceback."""
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        return code
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    if isinstance(error, OSError):
        return MACHINE
    if isinstance(error, ImportError):
        return 2
    if isinstance(error, (MemoryError, BrokenExecutor)):
        return MEMORY
    return None


def one_line(error: BaseException) -> str:
    """The message of an error as one line; an OSError says its reason and path, and what to do."""
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
    elif isinstance(error, MemoryError) and not isinstance(error, TokenmillError):
        message = "out of memory"  # which library could not get how much helps nobody
    elif isinstance(error, KeyboardInterrupt):
        message = str(error) or "interrupted"
    else:
        message = str(error) or type(error).__name__
    return printable(message)


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
    if error.errno == getattr(errno, "ESTALE", -1):
        return "; another host replaced or removed it, run the same command again"
    if error.errno == errno.EIO:
        return "; check the disk, then run the same command again"
    if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
        return "; this file system has no locks, choose an --output on another"
    return ""


def _free_bytes(where: object) -> int | None:
    """The free bytes on the disk of a file; None if the file or its disk is unknown."""
    if where is None or where == STDOUT:
        return None
    place = str(where).split(" at byte ")[0]
    for path in (place, os.path.dirname(place) or "."):  # noqa: PTH120 - a path that may be anything
        try:
            return shutil.disk_usage(path).free
        except (OSError, ValueError):
            continue
    return None
