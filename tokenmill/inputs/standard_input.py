"""Standard input as a source: put into a file first, so that it can be cut, hashed, read in parallel and again.

Its digest stands for the file's time in the plan. A run that was interrupted goes on if the same command is given the
same bytes again; other bytes are refused like any changed source.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

from tokenmill.errors import BadArgument, naming
from tokenmill.inputs._core import Xxh64
from tokenmill.inputs.digest import BLOCK_BYTES, digest_bytes, source_digest
from tokenmill.inputs.kinds import Kind, compression_of
from tokenmill.inputs.source_list import Source

READ_BYTES = 1 << 20


def spool(path: Path, input_format: str = "auto") -> Source:
    """All of standard input as the file `path`, and what it is; text unless input_format says otherwise.

    BadArgument (exit 2) if there is none, or only a keyboard; OSError names the file.
    """
    try:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
    except (OSError, ValueError):
        descriptor = -1
    if descriptor < 0:
        raise BadArgument("-: standard input is closed. Pass a file, or pipe the text in.")
    if os.isatty(descriptor):
        raise BadArgument("-: standard input is a terminal. Pipe the text in, or pass a file.")
    digests = bytearray()
    block = Xxh64()
    size = block_bytes = 0
    head = b""
    with naming(path), io.FileIO(path, "wb") as file:
        while data := _read(descriptor):
            head = head or data[:8]
            view = memoryview(data)
            while view.nbytes:
                view = view[file.write(view) :]
            view = memoryview(data)
            while view.nbytes:
                part = view[: BLOCK_BYTES - block_bytes]
                block.update(part)
                block_bytes += part.nbytes
                size += part.nbytes
                view = view[part.nbytes :]
                if block_bytes == BLOCK_BYTES:
                    digests += digest_bytes(block)
                    block, block_bytes = Xxh64(), 0
        if block_bytes:
            digests += digest_bytes(block)
        mtime_ns = os.fstat(file.fileno()).st_mtime_ns
    kind = Kind("text" if input_format == "auto" else input_format, compression_of(head))
    return Source(str(path), size, mtime_ns, None, kind, source_digest(bytes(digests)))


def _read(descriptor: int) -> bytes:
    with naming("standard input"):
        return os.read(descriptor, READ_BYTES)
