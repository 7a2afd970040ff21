"""Sources of text to count (texts, files, parts of files, streams), with their names, sizes and kinds."""

from __future__ import annotations

import io
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from bpe.errors import BadArgument, MissingInput, printable, shown, system_failure
from tokenmill.inputs.kinds import PLAIN_TEXT, Kind, check_libraries, kind_of
from tokenmill.inputs.source_list import Source as File
from tokenmill.inputs.sources import excluder, search_sources
from tokenmill.stores import NO_OPTIONS, StorageOptions, is_url

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Buffer

    from bpe.pretoken_counts.workspace import Workspace

    # A text or an open binary file; a path may name a pipe.
    Stream: TypeAlias = "str | os.PathLike[str] | Buffer | io.RawIOBase | io.BufferedIOBase | BinaryIO"
    # Any of them, a part of a file, or an object in a store.
    Source: TypeAlias = "Stream | FileRange | File"


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes [start, stop) of a file or object.

    stop: None for the end of the file.

    Text must start and stop where it may be cut. Records are those that begin in the range.
    """

    path: Path | File
    start: int = 0
    stop: int | None = None


def path_of(source: Source) -> Path | None:
    """Return the path of the source, None for a buffer, an open file or an object."""
    if isinstance(source, FileRange):
        source = source.path
    return Path(source) if isinstance(source, (str, os.PathLike)) else None


def object_of(source: Source) -> File | None:
    """Return the object that the source is or is a part of, None if there is none."""
    if isinstance(source, FileRange):
        source = source.path
    return source if isinstance(source, File) else None


def file_of(source: Source, kind: Kind) -> File | None:
    """Return the file or object for the shared readers, None for a buffer or an open file.

    Raise EnvironmentFailure if the file cannot be accessed.
    """
    path, found = path_of(source), object_of(source)
    if found is not None or path is None:
        return found
    try:
        status = path.stat()
    except OSError as error:
        raise system_failure(path, error) from error
    return File(os.fspath(path), status.st_size, status.st_mtime_ns, kind=kind)


def name_of(source: Source) -> str:
    """Return the name of a source: the path as given, "stdin", or "text" for a buffer."""
    path = path_of(source)
    if path is not None:
        return os.fspath(path)
    if (file := object_of(source)) is not None:
        return file.shown
    name = getattr(source, "name", None)
    return name.strip("<>") if isinstance(name, str) else "stdin" if name == 0 else "text"


def total_bytes(sources: Iterable[Source]) -> int | None:
    """Return the bytes of all sources, None if one of them is a pipe."""
    total: int | None = 0
    for source in sources:
        path = path_of(source)
        size: int | None
        found = object_of(source)
        if found is not None:
            size = found.size_bytes
        elif path is None and isinstance(source, io.IOBase):
            size = None
        elif path is None:
            size = memoryview(source).nbytes  # type: ignore[arg-type]
        else:
            size = path.stat().st_size if path.is_file() else None
            if size is not None and isinstance(source, FileRange):
                size = (size if source.stop is None else source.stop) - source.start
        total = None if total is None or size is None else total + size
    return total


def kind_of_source(source: Source, input_format: str) -> Kind:
    """Return the kind of a source: by its extension for files if input_format is "auto", text for pipes and buffers."""
    path, found = path_of(source), object_of(source)
    if found is not None:
        return found.kind
    if path is None or (input_format == "auto" and not path.is_file()):
        return PLAIN_TEXT
    try:
        return kind_of(os.fspath(path), input_format)
    except ValueError as error:
        raise BadArgument(f"{path}: {error}") from None


def list_of(inputs: Iterable[Source]) -> list[Source]:
    """Return the inputs of a call as a list, also for a single one. Raise BadArgument for anything else."""
    if isinstance(inputs, (str, os.PathLike, bytes, bytearray, memoryview)):
        return [inputs]
    if hasattr(inputs, "read"):  # an open file, which would iterate over lines
        return [cast("BinaryIO", inputs)]
    if not isinstance(inputs, Iterable):
        raise _bad_input(inputs)
    return list(inputs)


def listed(
    sources: Iterable[Source],
    input_format: str,
    only_files: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
    note: Callable[[str], None] | None = None,
    exclude: Sequence[str] = (),
) -> list[Source]:
    """Replace folders and globs by files, and URLs by objects. Check that the libraries to read them are installed.

    only_files: refuse named pipes and devices.
    note: called with a line about files that were left out of folders.
    exclude: globs of files to leave out.

    Raise MissingInput with all arguments that match no file.
    """
    found: list[Source] = []
    problems: list[str] = []
    kinds: set[Kind] = set()
    is_excluded = excluder(exclude)
    for source in sources:
        _check_source(source)
        if isinstance(source, (str, os.PathLike)) and is_excluded(os.fspath(source)):
            continue
        is_remote = isinstance(source, str) and is_url(source)
        path = Path(source) if isinstance(source, (str, os.PathLike)) and not is_remote else None
        is_searched = path is not None and not path.is_file()
        is_searched = path is not None and is_searched and (only_files or path.is_dir() or not path.exists())
        if not is_remote and not is_searched:
            found.append(source)
            kinds.add(kind_of_source(source, input_format))
            continue
        named = str(source) if path is None else os.fspath(path)
        search = search_sources([named], input_format=input_format, options=storage_options, exclude=exclude)
        problems += search.problems
        found += [file if file.version else Path(file.path) for file in search.sources]
        kinds |= search.sources.kinds
        if note is not None and search.note:
            note(search.note)
    if problems:
        raise MissingInput("; ".join(map(printable, problems)))
    check_libraries(kinds)
    return found


def _check_source(source: object) -> None:
    """Raise BadArgument for anything that is not a source."""
    if isinstance(source, io.TextIOBase):
        raise BadArgument(
            f'inputs: open files must be in binary mode (got {shown(source)}). Open the file with "rb".'
        )
    if not isinstance(source, (str, os.PathLike, FileRange, File)) and not hasattr(source, "read"):
        try:
            memoryview(source)  # type: ignore[arg-type]
        except TypeError:
            raise _bad_input(source) from None


def _bad_input(value: object) -> BadArgument:
    return BadArgument(f"inputs: must be paths, bytes or open files (got {shown(value)})")


def spooled(source: Source, input_format: str, of_documents: bool, workspace: Workspace) -> Source:
    """Copy a text or stream of records, such as standard input, to a file, because the readers of records need one.

    of_documents: text is read as documents too.
    """
    if isinstance(source, (str, os.PathLike)):
        named = Path(source)  # may be a pipe
        if not of_documents or not named.exists() or named.is_file() or named.is_dir():
            return source
        with named.open("rb") as stream:
            return spooled(stream, input_format, of_documents, workspace)
    if isinstance(source, (File, FileRange)):
        return source
    is_text = input_format in ("auto", "text") or not isinstance(source, io.IOBase)
    if is_text and not of_documents:
        return source
    path = workspace.new_file()
    try:
        with path.open("wb") as file:
            if isinstance(source, io.IOBase):
                shutil.copyfileobj(source, file, 1 << 20)
            else:
                file.write(source)  # type: ignore[arg-type]
    except OSError as error:
        raise system_failure(error.filename or path, error) from error
    return path


def identity(source: Source) -> tuple[str, os.stat_result | None]:
    """Return (the name of the source in facts, the status of a regular file or None)."""
    path = path_of(source)
    if path is not None:
        with suppress(OSError):  # a missing file is reported when it is read
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                return os.path.realpath(path), status
    return name_of(source), None
