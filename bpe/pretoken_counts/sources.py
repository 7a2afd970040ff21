"""What is counted: texts, files, parts of files, streams; what they are called, and what facts of counts say of them.

Facts know a file by its path, size and time of change, a stream by its text: a run that goes on knows by it what was
counted of each of its inputs.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bpe.errors import MissingInput
from bpe.pretoken_counts.counts_facts import CountedSource
from corpus._core import Xxh64

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Buffer

    from bpe.pretoken_counts.text_blocks import Reader

    # A text or an open binary file; a path may name a pipe.
    Stream: TypeAlias = "str | os.PathLike[str] | Buffer | io.RawIOBase | io.BufferedIOBase | BinaryIO"
    # Any of them, a part of a file, or what follows the part of a stream that was counted.
    Source: TypeAlias = "Stream | FileRange | StreamRest"


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes [start, stop) of a file; stop None: up to its end. It must start and stop where the text may be cut."""

    path: Path
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class StreamRest:
    """What follows the first `counted_bytes` of a stream; digest: of the text of these, as `TextDigest` has it."""

    stream: Stream
    counted_bytes: int
    digest: str


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


def path_of(source: Source) -> Path | None:
    """The file that the source is or lies in; None for a buffer or an open file."""
    if isinstance(source, FileRange):
        return source.path
    if isinstance(source, StreamRest):
        source = source.stream
    return Path(source) if isinstance(source, (str, os.PathLike)) else None


def name_of(source: Source) -> str:
    """What a source is called: the path of a file as it is given, "stdin", or "text" for what has no name."""
    path = path_of(source)
    if path is not None:
        return os.fspath(path)
    name = getattr(source.stream if isinstance(source, StreamRest) else source, "name", None)
    return name.strip("<>") if isinstance(name, str) else "stdin" if name == 0 else "text"


def total_bytes(sources: Iterable[Source]) -> int | None:
    """The bytes of all sources, None if a pipe is among them; MissingInput lists the files that are not there."""
    total: int | None = 0
    missing = []
    for source in sources:
        path = path_of(source)
        size: int | None
        if isinstance(source, StreamRest) or (path is None and isinstance(source, io.IOBase)):
            size = None
        elif path is None:
            size = memoryview(source).nbytes  # type: ignore[arg-type]
        elif not path.exists() or path.is_dir():
            missing.append(f"{path} ({'is a folder' if path.is_dir() else 'not found'})")
            continue
        elif isinstance(source, FileRange):
            size = (path.stat().st_size if source.stop is None else source.stop) - source.start
        else:
            size = path.stat().st_size if path.is_file() else None
        total = None if total is None or size is None else total + size
    if missing:
        raise MissingInput(f"can't read {', '.join(missing)}: name text files")
    return total


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
