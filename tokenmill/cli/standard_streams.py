"""stdout and stderr as a command needs them, whatever the shell and the locale made of them."""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import suppress
from typing import NoReturn


def prepare_standard_streams() -> None:
    """Nothing printed can fail for its characters, and print(file=sys.stderr) never ends up on stdout.

    LC_ALL=C: what the encoding lacks is escaped. Closed by the shell (`>&-`), where Python has None: a sink. Python's
    warnings are one line each, without the line of code.
    """
    warnings.showwarning = lambda message, *_, **__: complain(str(message), "warning")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Kept open until the end.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def complain(line: str, kind: str = "error") -> None:
    """Print `tokenmill: kind: line` on stderr; where that is full or closed, the exit code tells by itself."""
    with suppress(OSError, ValueError, AttributeError):
        print(f"tokenmill: {kind}: {line}", file=sys.stderr, flush=True)


def flush_and_leave(code: int) -> NoReturn:
    """End at once: workers are gone and all files closed; to free a vocabulary entry by entry would take longer."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # full, closed, or not there at all
            stream.flush()
    os._exit(code)
