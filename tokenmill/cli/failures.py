"""Reports the error that ends a command on one line, and chooses the exit code.

tokenmill's errors have their own exit codes. Others: 2 for a package that is not installed, 4 for the system (space,
permission, I/O), 5 for memory or a lost worker, 130 for an interrupt. Anything else is a bug: exit code 1, the
traceback and a request to report it.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress

from tokenmill.cli.standard_streams import complain, prepare_standard_streams
from tokenmill.errors import Advice, TokenmillError, naming, printable, with_sentence, without_panic

MACHINE, MEMORY = 4, 5
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
STDOUT = "stdout"  # as the name of a file in an OSError
# Errors of Python and the system: class, exit code, error code.
_FOREIGN = (
    (KeyboardInterrupt, 128 + signal.SIGINT, "E-RUN-004"),
    (OSError, MACHINE, "E-SYSTEM-004"),
    (ImportError, 2, "E-SYSTEM-007"),
    ((MemoryError, BrokenExecutor), MEMORY, "E-SYSTEM-006"),
)
_NO_LOCKS = "This file system has no locks; choose an --output on another one."
_ADVICE = {  # by errno
    errno.ENOSPC: "Free some space and run the same command again.",
    errno.EDQUOT: "Free some of your quota and run the same command again.",
    errno.EFBIG: "Raise the limit on file size (ulimit -f) and run the same command again.",
    **dict.fromkeys(
        (errno.EMFILE, errno.ENFILE), "Raise the limit on open files (ulimit -n) or lower --workers."
    ),
    errno.EAGAIN: "Raise the limit on processes (ulimit -u) or lower --workers.",
    errno.ESTALE: "Another host replaced or removed the file; run the same command again.",
    errno.EIO: "Check the disk, then run the same command again.",
    **dict.fromkeys((errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP), _NO_LOCKS),
}


def run_command(run: Callable[[], int], arguments: Sequence[str] | None, with_less_memory: str = "") -> int:
    """Run a command and return its exit code. Report an error on one line.

    arguments: words of the command line; None: those of this process.
    with_less_memory: sentence that is added if memory ran out.
    """
    prepare_standard_streams()
    try:
        code = run()
        with naming(STDOUT):
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # as in `tokenmill head | head`; that is not an error
        # The interpreter flushes stdout once more when it exits, and would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except SystemExit as end:  # --help
        return end.code if isinstance(end.code, int) else 0
    except BaseException as error:  # also a panic of an extension module
        return ended_by(error, "--debug" in (sys.argv if arguments is None else arguments), with_less_memory)


def ended_by(error: BaseException, debug: bool, with_less_memory: str = "") -> int:
    """Report the error that ended the command, with its `Advice`, and return the exit code.

    debug: show the error's code, and the traceback of a user error too.
    """
    more = " ".join(note for note in getattr(error, "__notes__", ()) if isinstance(note, Advice))
    error = without_panic(error)
    exit_code = exit_code_of(error)
    if exit_code is None or debug:
        with suppress(OSError, ValueError, AttributeError):  # stderr is full, closed or absent
            traceback.print_exception(error)
    if exit_code is None:
        more = "This is a bug in tokenmill: please report it with the traceback above."
    elif isinstance(error, (MemoryError, BrokenExecutor)) and not isinstance(error, TokenmillError):
        more = f"{with_less_memory} {more}".strip()
    line = one_line(error)
    complain(with_sentence(line, more) if more else line, f"error [{code_of(error)}]" if debug else "error")
    return 1 if exit_code is None else exit_code


def exit_code_of(error: BaseException) -> int | None:
    """Return the exit code of an error, or None for a bug, which is shown with its traceback."""
    found = (exit_code for kind, exit_code, _ in _FOREIGN if isinstance(error, kind))
    code: int | None = getattr(error, "exit_code", next(found, None))
    return code


def code_of(error: BaseException) -> str:
    """Return the stable code of an error: E-BUG-001 for a bug."""
    found = next((code for kind, _, code in _FOREIGN if isinstance(error, kind)), "E-BUG-001")
    return error.code if isinstance(error, TokenmillError) else found


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line. An OSError gets its path and, if known, the fix."""
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        where = error.filename2 or error.filename
        message = f"{error.strerror} (errno {error.errno})"
        if where is not None:
            message = f"{where}: {message}"
        if error.errno == errno.ENOSPC and where not in (None, STDOUT):
            folder = os.path.dirname(str(where).split(" at byte ")[0])  # noqa: PTH120 - the path may be of any form
            with suppress(OSError, ValueError):
                message += f" ({shutil.disk_usage(folder or '.').free:,} bytes are free)"
        if advice := _ADVICE.get(error.errno or 0):
            message = with_sentence(message, advice)
    elif isinstance(error, ImportError):
        is_core = "_core" in str(error)
        missing = "the C++ core is not built" if is_core else f"{error.name or error} is not installed"
        message = f"{missing}. Run pip install . in the checkout, or pip install tokenmill."
    elif isinstance(error, MemoryError) and not isinstance(error, TokenmillError):
        message = "out of memory"  # the failed allocation's size would not help
    elif isinstance(error, KeyboardInterrupt):
        message = str(error) or "interrupted"
    return printable(message)
