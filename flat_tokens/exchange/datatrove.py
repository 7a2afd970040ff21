"""datatrove's tokenized files: NAME.ds with the IDs of all documents, and NAME.ds.index, uint64, with their ends.

An ID has 2 or 4 bytes, which follows from the last end. Loss masks (NAME.ds.loss) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from flat_tokens.errors import ArgumentError, damaged, printable
from flat_tokens.exchange.files import COPY_AGAIN, COPY_BOTH, Column, InputFile, with_ends, without_ends
from flat_tokens.exchange.formats import SHORT, ReadOptions
from flat_tokens.split_writer import Block

END_BYTES = 8


def read(path: Path, options: ReadOptions) -> Iterator[Block]:
    """path: a file, or a folder of files, which are read in the order of their names."""
    found = sorted(path.rglob("*.ds"), key=str) if path.is_dir() else [path]
    if not found:
        raise ArgumentError(f"{printable(str(path))}: no file NAME.ds in this folder")
    for file in found:
        yield from _file(file, options)


def _file(path: Path, options: ReadOptions) -> Iterator[Block]:
    if Path(f"{path}.loss").exists():
        options.notes.append(f"{path}.loss: loss masks are not imported")
    data = InputFile(path)
    if not Path(f"{path}.index").is_file():
        if options.dtype is None:
            raise ArgumentError(
                f"{data.name}.index: missing, so the type of IDs is unknown. Pass --dtype {' or '.join(SHORT)}."
            )
        yield from without_ends(data.column(0, options.dtype))
        return
    index = InputFile(Path(f"{path}.index"))
    if index.size % END_BYTES:
        what = f"truncated: its size must be a multiple of {END_BYTES} bytes (got {index.size})"
        raise damaged(index.name, what, COPY_AGAIN)
    ends = index.column(0, "u8")
    yield from with_ends(data.column(0, options.dtype or _dtype(data, ends)), ends, index.name)


def _dtype(data: InputFile, ends: Column) -> str:
    count = int(ends[len(ends) - 1 :][0]) if len(ends) else 0
    for dtype, size in zip(SHORT, (2, 4), strict=True):
        if count * size == data.size:
            return dtype
    what = f"must have {2 * count} or {4 * count} bytes, as {ends.name} lists {count} IDs (got {data.size})"
    raise damaged(data.name, what, COPY_BOTH)
