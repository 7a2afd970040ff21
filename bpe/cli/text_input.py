"""Text files for the commands: which files the arguments mean, and their text in blocks of valid UTF-8."""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from bpe.errors import BadArgument, EnvironmentFailure, MissingInput, printable, shown
from corpus.utf8 import Invalid, TextDecoder

if TYPE_CHECKING:
    from bpe.pretoken_counts.sources import Source

_BLOCK_BYTES: Final = 1 << 20
_MARKED_UP: Final = {".csv", ".tsv", ".html", ".htm"}


def expand_inputs(arguments: Iterable[str]) -> list[Path]:
    """The files that the arguments mean: a file, all files below a folder, the matches of a glob, each sorted.

    Hidden files below a folder are left out. MissingInput lists every argument that means no readable file.
    """
    files: list[Path] = []
    bad: list[str] = []
    for argument in arguments:
        if not argument:
            bad.append("'': an empty name is no file")
            continue
        path = Path(argument)
        if path.is_file():
            found = [path]
        elif path.is_dir():
            found = [
                file for file in sorted(path.rglob("*")) if file.is_file() and not _is_hidden(file, path)
            ]
        else:
            matches = glob.glob(argument, recursive=True)  # noqa: PTH207 - absolute patterns too
            found = [match for match in map(Path, sorted(matches)) if match.is_file()]
        if not found:
            bad.append(_reason(argument, path))
        files.extend(found)
    if bad:
        raise MissingInput("; ".join(bad))
    return files


def input_sources(arguments: list[str]) -> list[Source]:
    """The files that the arguments mean, and stdin for "-"."""
    sources: list[Source] = []
    if arguments.count("-") > 1:
        raise BadArgument("-: stdin is read once; name it once")
    expanded = iter(expand_inputs([argument for argument in arguments if argument != "-"]))
    if "-" not in arguments:
        return list(expanded)
    # One call names all that is missing; the order is as it was given.
    for argument in arguments:
        if argument != "-":
            sources += expand_inputs([argument])
        elif sys.stdin is None:  # closed by the shell: <&-
            raise MissingInput("stdin is closed; name a file")
        else:
            sources.append(sys.stdin.buffer)
    return sources


def plain_text_note(sources: Iterable[Source]) -> str:
    """A line about the inputs whose names say that they hold more than text; "" if there are none."""
    named = [
        str(source) for source in sources if isinstance(source, Path) and source.suffix.lower() in _MARKED_UP
    ]
    if not named:
        return ""
    more = f" and {len(named) - 1:,} more" if len(named) > 1 else ""
    kinds = ", ".join(sorted({Path(name).suffix.lower() for name in named}))
    return (
        f"{printable(named[0])}{more}: {kinds} is read as plain text, with its markup and separators; extract the text "
        "first if that is not what is wanted"
    )


def named_files(sources: Iterable[Source]) -> list[Path | str]:
    """The files of `input_sources`, and "-" for stdin, as `check_outputs_apart` takes them."""
    return [source if isinstance(source, Path) else "-" for source in sources]


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _reason(argument: str, path: Path) -> str:
    name = shown(argument, 200)
    if path.is_dir():
        return f"{name}: the folder holds no files"
    if path.exists():
        return f"{name}: is no regular file"
    if any(character in argument for character in "*?["):
        return f"{name}: no file matches"
    return f"{name}: no such file"


def read_text(
    file: BinaryIO, where: str, invalid: Invalid, replaced: Callable[[int], None] | None = None
) -> Iterator[str]:
    """The text in blocks of about 1 MiB, whole characters; InvalidText names source and byte offset.

    replaced is told at the end how many U+FFFD were put in, if any were.
    """
    decoder = TextDecoder(where, invalid)
    while block := _read(file, where):
        yield decoder.decode(block)
    yield decoder.decode(b"", final=True)
    if decoder.replaced and replaced is not None:
        replaced(decoder.replaced)


def _read(file: BinaryIO, where: str) -> bytes:
    try:
        return file.read(_BLOCK_BYTES)
    except OSError as error:
        raise EnvironmentFailure(f"{where}: can't read: {error.strerror or error}") from None
