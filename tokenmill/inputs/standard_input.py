"""Standard input as a source: it is first copied to a file, so that it can be divided and read in parallel.

Its hash takes the place of the modification time in the plan. An interrupted run resumes if the same command gets the
same bytes again; other bytes are refused like any changed source.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

from tokenmill.errors import BadArgument, naming
from tokenmill.inputs._core import Xxh64
from tokenmill.inputs.kinds import Kind, compression_of
from tokenmill.inputs.source_list import Source

READ_BYTES = 1 << 20


def spool(path: Path, input_format: str = "auto") -> Source:
    """Copy standard input to the file `path` and return the source. Its format is text unless input_format says more.

    BadArgument (exit 2) if there is no input or it is a terminal; OSError names the file.
    """
    try:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
    except (OSError, ValueError):
        descriptor = -1
    if descriptor < 0:
        raise BadArgument("-: standard input is closed. Pass a file, or pipe the text in.")
    if os.isatty(descriptor):
        raise BadArgument("-: standard input is a terminal. Pipe the text in, or pass a file.")
    content, size, head = Xxh64(), 0, b""
    with naming(path), io.FileIO(path, "wb") as file:
        while data := _read(descriptor):
            head = head or data[:8]
            content.update(data)
            size += len(data)
            view = memoryview(data)
            while view.nbytes:
                view = view[file.write(view) :]
        mtime_ns = os.fstat(file.fileno()).st_mtime_ns
    kind = Kind("text" if input_format == "auto" else input_format, compression_of(head))
    return Source(str(path), size, mtime_ns, None, kind, f"{content.digest():016x}")


def _read(descriptor: int) -> bytes:
    with naming("standard input"):
        return os.read(descriptor, READ_BYTES)
