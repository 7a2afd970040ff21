"""Prepares stdout and stderr for a command, whatever the shell and the locale made of them."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterable
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


def print_result(lines: Iterable[str]) -> None:
    """Print lines to stdout. A closed pipe or a full disk is no error, since the work is done."""
    try:
        print("\n".join(lines), flush=True)
    except (OSError, ValueError):
        with suppress(OSError):
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - else Python complains again at exit


def flush_and_leave(code: int) -> NoReturn:
    """End the process at once: freeing a large vocabulary entry by entry would take longer."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
