"""Prepares stdout and stderr for a command, whatever the shell and the locale made of them."""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import suppress
from typing import NoReturn


def prepare_standard_streams() -> None:
    """Escape characters that the locale's encoding lacks, open closed streams, and shorten Python's warnings.

    If the shell closed a stream (`>&-`), Python has None, and print(file=sys.stderr) would write to stdout.
    """
    warnings.showwarning = lambda message, *_, **__: complain(str(message), "warning")
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - stays open
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def complain(line: str, kind: str = "error") -> None:
    """Print `tokenmill: kind: line` on stderr, if stderr is open and has space."""
    with suppress(OSError, ValueError, AttributeError):
        print(f"tokenmill: {kind}: {line}", file=sys.stderr, flush=True)


def flush_and_leave(code: int) -> NoReturn:
    """End the process at once: freeing a large vocabulary entry by entry would take longer."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
