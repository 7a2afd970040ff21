"""What the facts of counts say of a source: a file by its path, size and time of change, a stream by its text.

A run that goes on knows by it what was counted of each of its inputs.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from bpe.pretoken_counts.counts_facts import CountedSource
from bpe.pretoken_counts.stream_rest import StreamRest, TextDigest
from bpe.pretoken_counts.text_blocks import name_of, path_of

if TYPE_CHECKING:
    from bpe.pretoken_counts.text_blocks import Reader, Source


def identity(source: Source) -> tuple[str, os.stat_result | None]:
    """(what facts call the source, the status of a regular file)."""
    path = path_of(source)
    if path is not None:
        with suppress(OSError):  # not there: that is told where it is to be read
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                return os.path.realpath(path), status
    return name_of(source), None


def read_source(
    source: Source, reader: Reader, counted_bytes: int, stopped: bool, digest: TextDigest | None
) -> CountedSource:
    """A source that was read, to its end unless `stopped`."""
    path, status = path_of(source), reader.status
    if path is not None and status is not None:
        return CountedSource(
            os.path.realpath(path), status.st_size, counted_bytes, status.st_mtime_ns, digest=""
        )
    size_bytes = counted_bytes + stopped  # how much more there is, is not known
    return CountedSource(
        reader.where, size_bytes, counted_bytes, digest="" if digest is None else digest.hex()
    )


def unread_source(source: Source) -> CountedSource:
    """A source that counting stopped before. Nothing is opened: a pipe would wait, a file may have gone."""
    name, status = identity(source)
    if status is not None:
        return CountedSource(name, status.st_size, 0, status.st_mtime_ns, digest="")
    digest = source.digest if isinstance(source, StreamRest) else TextDigest().hex()
    return CountedSource(name, 1, 0, digest=digest)
