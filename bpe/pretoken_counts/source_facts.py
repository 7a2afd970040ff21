"""What facts of counts say of the sources: a run that goes on knows by it what was counted of each of its inputs.

Facts know a file by its path, size and time of change, a stream by its text.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bpe.pretoken_counts.counts_facts import CountedSource
from bpe.pretoken_counts.sources import StreamRest, identity, object_of, path_of
from tokenmill.inputs._core import Xxh64
from tokenmill.inputs.source_list import Source as File

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source
    from bpe.pretoken_counts.text_blocks import Reader


class TextDigest:
    """XXH64 of a text in pieces; bytes that are not UTF-8 count as the U+FFFD that replace them."""

    def __init__(self) -> None:
        self._hash = Xxh64()

    def add(self, text: memoryview | bytes) -> None:
        """The next piece of the text."""
        self._hash.update(text)

    def hex(self) -> str:
        """The digest of all pieces so far, 16 digits."""
        return f"{self._hash.digest():016x}"


def decoded_source(
    file: File, read_as: str, stopped: bool, used_bytes: int, text_bytes: int
) -> CountedSource:
    """The facts of a file of `file_of`: about used_bytes of its bytes gave text_bytes of text."""
    name = file.shown if file.version else os.path.realpath(file.path)
    size = file.size_bytes
    if not stopped:
        return CountedSource(name, size, size, file.mtime_ns, digest="")
    used_bytes = max(0, min(used_bytes, size - 1))
    return CountedSource(name, size, used_bytes, file.mtime_ns, read_as, text_bytes)


def read_source(
    source: Source, reader: Reader, counted_to: int, stopped: bool, digest: TextDigest | None
) -> CountedSource:
    """A source that was read up to a byte of it, to its end unless `stopped`."""
    counted_bytes = counted_to - reader.start
    path, status = path_of(source), reader.status
    if reader.file is not None:
        return decoded_source(reader.file, reader.read_as, stopped, reader.used_bytes, counted_to)
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
    found = object_of(source)
    if isinstance(source, StreamRest) and (status is not None or found is not None):
        size, time = (found.size_bytes, 0) if status is None else (status.st_size, status.st_mtime_ns)  # type: ignore[union-attr]
        return CountedSource(name, size, 0, time, source.digest, source.counted_bytes)
    if found is not None:
        return CountedSource(name, found.size_bytes, 0, digest="")
    if status is not None:
        return CountedSource(name, status.st_size, 0, status.st_mtime_ns, digest="")
    digest = source.digest if isinstance(source, StreamRest) else TextDigest().hex()
    return CountedSource(name, 1, 0, digest=digest)
