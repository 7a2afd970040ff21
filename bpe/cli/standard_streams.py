"""stdout and stderr as a command needs them, whatever the shell and the locale made of them."""

from __future__ import annotations

import io
import os
import sys


def prepare_standard_streams() -> None:
    """Nothing printed can fail for its characters, and print(file=sys.stderr) never ends up on stdout.

    LC_ALL=C: what the encoding lacks is escaped. Closed by the shell (`>&-`), where Python has None: a sink.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Kept open until the end.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
