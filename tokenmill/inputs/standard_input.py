"""Standard input as a source: copied first, so that it can be divided, read in parallel and read again.

A hash of its bytes stands for the modification time in the plan. An interrupted run resumes if the same command reads
the same bytes again; other bytes are refused like a changed file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from tokenmill.errors import BadArgument, naming
from tokenmill.inputs._core import Xxh64
from tokenmill.inputs.kinds import Kind, compression_of
from tokenmill.inputs.source_list import Source
from tokenmill.stores import NO_OPTIONS, StorageOptions, is_url, open_store, split_key

READ_BYTES = 1 << 20
_HEAD_BYTES = 8


def spool(place: str, input_format: str = "auto", options: StorageOptions = NO_OPTIONS) -> Source:
    """Copy standard input to a path or URL and return it as a source, of text unless input_format says otherwise.

    options: for the store of a URL. BadArgument (exit 2) if standard input is closed or a terminal.
    """
    descriptor = _descriptor()
    folder, name = split_key(place) if is_url(place) else os.path.split(place)
    digest, head = Xxh64(), bytearray()

    def blocks() -> Iterator[bytes]:
        with naming("standard input"):
            while data := os.read(descriptor, READ_BYTES):
                head.extend(data[: _HEAD_BYTES - len(head)])
                digest.update(data)
                yield data

    entry = open_store(folder or ".", options).put(name, blocks())
    kind = Kind("text" if input_format == "auto" else input_format, compression_of(bytes(head)))
    content = f"{digest.digest():016x}"
    if is_url(place):
        settings = tuple(sorted(options.items()))
        return Source(place, entry.size, 0, None, kind, content, version=entry.version, options=settings)
    return Source(place, entry.size, os.stat(place).st_mtime_ns, None, kind, content)  # noqa: PTH116


def _descriptor() -> int:
    try:
        descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else -1
    except (OSError, ValueError):
        descriptor = -1
    if descriptor < 0:
        raise BadArgument("-: standard input is closed. Pass a file, or pipe the text in.")
    if os.isatty(descriptor):
        raise BadArgument("-: standard input is a terminal. Pipe the text in, or pass a file.")
    return descriptor
