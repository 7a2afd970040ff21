"""Sources of text to count: ranges of files and objects, and streams, with their names and sizes."""

from __future__ import annotations

import io
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from bpe.errors import BadArgument, MissingInput, printable, shown, system_failure
from bpe.pretoken_counts.counts_facts import CountedSource
from tokenmill.inputs.blocks import ByteStream
from tokenmill.inputs.blocks import FileRange as FileStream
from tokenmill.inputs.decompress import DecompressedFile
from tokenmill.inputs.kinds import PLAIN_TEXT, Kind, check_libraries, kind_of
from tokenmill.inputs.source_list import Source as File
from tokenmill.inputs.sources import excluder, search_sources
from tokenmill.stores import NO_OPTIONS, StorageOptions, is_url

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Buffer

    from bpe.pretoken_counts.counting_options import CountingOptions
    from bpe.pretoken_counts.workspace import Workspace
    from bpe.progress import Progress

    # What callers pass: a path, folder, glob or URL, a text, or an open binary file.
    Input: TypeAlias = (
        "str | os.PathLike[str] | Buffer | io.RawIOBase | io.BufferedIOBase | BinaryIO | Source"
    )


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes [start, stop) of a file or object.

    Text must start and stop where it may be cut. Records are those that begin in the range.
    """

    file: File
    start: int
    stop: int

    @staticmethod
    def whole(file: File) -> FileRange:
        """Return all bytes of a file."""
        return FileRange(file, 0, file.size_bytes)

    @property
    def name(self) -> str:
        """The path or URL as given."""
        return self.file.shown

    @property
    def kind(self) -> Kind:
        """The format and compression."""
        return self.file.kind

    @property
    def size_bytes(self) -> int:
        """The number of bytes."""
        return self.stop - self.start

    @contextmanager
    def opened(self) -> Iterator[ByteStream]:
        """Open the range, decompressed. Raise EnvironmentFailure if the system refuses."""
        try:
            file = self.file.open()
        except OSError as error:
            raise system_failure(self.name, error) from error
        with file:
            compression = self.kind.compression
            if compression == "none":
                yield FileStream(file, self.name, self.start, self.stop)
            else:
                yield DecompressedFile(file, self.name, compression)

    @property
    def full_name(self) -> str:
        """The absolute path without links, or the URL."""
        return self.file.shown if self.file.version else os.path.realpath(self.file.path)

    def facts(self, read_bytes: int = 0) -> CountedSource:
        """Return the entry for a counts file."""
        return CountedSource(self.full_name, self.file.size_bytes, self.size_bytes, self.file.mtime_ns)


@dataclass(frozen=True, slots=True)
class Stream:
    """Plain text that is read once: a text in memory, an open file, or a named pipe, which reading opens.

    size_bytes: None if it is unknown.
    """

    name: str
    stream: Any
    size_bytes: int | None = None
    kind: Kind = PLAIN_TEXT

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open a named pipe, or return the open file or text, which stays open."""
        if not isinstance(self.stream, Path):
            yield self.stream
            return
        try:
            pipe = self.stream.open("rb", buffering=0)
        except OSError as error:
            raise system_failure(self.name, error) from error
        with pipe:
            yield pipe

    def facts(self, read_bytes: int) -> CountedSource:
        """Return the entry for a counts file."""
        return CountedSource(self.name, read_bytes, read_bytes)


Source = FileRange | Stream


def list_of(inputs: Iterable[Input]) -> list[Input]:
    """Return the inputs of a call as a list, also for a single one. Raise BadArgument for anything else."""
    if isinstance(inputs, (str, os.PathLike, bytes, bytearray, memoryview)):
        return [inputs]
    if hasattr(inputs, "read"):  # an open file, which would iterate over lines
        return [cast("BinaryIO", inputs)]
    if not isinstance(inputs, Iterable):
        raise _bad_input(inputs)
    return list(inputs)


def found_sources(
    inputs: Iterable[Input], options: CountingOptions, progress: Progress | None, workspace: Workspace
) -> list[Source]:
    """Return the files, objects and streams of the inputs. Streams of documents are copied to the workspace."""
    note = None if progress is None else progress.note
    found = listed(list_of(inputs), options.input_format, storage_options=options.storage_options, note=note)
    return [
        spooled(source, options.input_format, bool(options.text_separator), workspace) for source in found
    ]


def listed(
    inputs: Iterable[Input],
    input_format: str,
    only_files: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
    note: Callable[[str], None] | None = None,
    exclude: Sequence[str] = (),
) -> list[Source]:
    """Return the files, objects and streams of all inputs. Check that the libraries to read them are installed.

    only_files: refuse named pipes and devices.
    note: called with a line about files that were left out of folders.
    exclude: globs of files to leave out.

    Raise MissingInput with all arguments that match no file.
    """
    found: list[Source] = []
    problems: list[str] = []
    is_excluded = excluder(exclude)
    for given in inputs:
        if isinstance(given, (FileRange, Stream)):
            found.append(given)
            continue
        if not isinstance(given, (str, os.PathLike)):
            found.append(_stream(given))
            continue
        name = os.fspath(given)
        if is_excluded(name):
            continue
        with suppress(OSError):  # search_sources reports it
            status = None if is_url(name) else os.stat(name)  # noqa: PTH116 - keeps "./a"
            if status is not None and stat.S_ISREG(status.st_mode):
                found.append(_file(name, status, input_format))
                continue
            if status is not None and not only_files and not stat.S_ISDIR(status.st_mode):
                found.append(Stream(name, Path(name)))
                continue
        search = search_sources([name], input_format=input_format, options=storage_options, exclude=exclude)
        problems += search.problems
        found += map(FileRange.whole, search.sources)
        if note is not None and search.note:
            note(search.note)
    if problems:
        raise MissingInput("; ".join(map(printable, problems)))
    check_libraries({source.kind for source in found})
    return found


def _file(path: str, status: os.stat_result, input_format: str) -> FileRange:
    try:
        kind = kind_of(path, input_format)
    except ValueError as error:
        raise BadArgument(f"{path}: {error}") from None
    return FileRange.whole(File(path, status.st_size, status.st_mtime_ns, kind=kind))


def _stream(given: Any) -> Stream:
    """Return a text or an open file as a stream. Raise BadArgument for anything else."""
    if isinstance(given, io.TextIOBase):
        raise BadArgument(
            f'inputs: open files must be in binary mode (got {shown(given)}). Open the file with "rb".'
        )
    if hasattr(given, "read"):
        name = getattr(given, "name", None)
        return Stream(name.strip("<>") if isinstance(name, str) else "stdin" if name == 0 else "text", given)
    try:
        text = memoryview(given)
    except TypeError:
        raise _bad_input(given) from None
    return Stream("text", io.BytesIO(given), text.nbytes)


def _bad_input(value: object) -> BadArgument:
    return BadArgument(f"inputs: must be paths, bytes or open files (got {shown(value)})")


def spooled(source: Source, input_format: str, of_documents: bool, workspace: Workspace) -> Source:
    """Copy a stream of documents, such as standard input, to a file, because the readers of documents need one.

    of_documents: text is read as documents too.
    """
    is_text = input_format in ("auto", "text") or (
        isinstance(source, Stream) and source.size_bytes is not None
    )
    if isinstance(source, FileRange) or (is_text and not of_documents):
        return source
    path = workspace.new_file()
    try:
        with source.opened() as stream, path.open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        return _file(os.fspath(path), path.stat(), "text" if is_text else input_format)
    except OSError as error:
        raise system_failure(error.filename or path, error) from error
