"""datatrove's tokenized files: NAME.ds, the ids of all documents in 2 or 4 bytes each, and NAME.ds.index, uint64: where
each document ends.

How wide an id is follows from the index: its last entry is the count of ids. Loss masks (NAME.ds.loss) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from flat_tokens.errors import ArgumentError, damaged
from flat_tokens.exchange.blocks import Block
from flat_tokens.exchange.formats import Reader
from flat_tokens.exchange.inputs import (
    COPY_AGAIN,
    COPY_BOTH,
    EndsColumn,
    InputFile,
    ReadOptions,
    exists,
    is_folder,
    joined,
    with_ends,
    without_ends,
)
from tokenmill import stores

DTYPES = ("uint16", "uint32")
END_BYTES = 8


def read(place: str, options: ReadOptions) -> Iterator[Block]:
    """See Reader. place: a file, or a folder of files, which are read in the order of their names."""
    if not is_folder(place, ".ds"):
        yield from _file(place, options)
        return
    store = stores.open_store(place, options.storage)
    names = [entry.key for entry in store.list() if entry.key.endswith(".ds")]
    if not names:
        raise ArgumentError(f"{store.url}: no file NAME.ds in this folder")
    for name in names:
        yield from _file(joined(place, name), options)


def _file(place: str, options: ReadOptions) -> Iterator[Block]:
    if exists(f"{place}.loss", options.storage):
        options.notes.append(f"{place}.loss: loss masks are not imported")
    with InputFile(place, options.storage) as data:
        if not exists(f"{place}.index", options.storage):
            if options.dtype is None:
                raise ArgumentError(
                    f"{data.name}.index: missing, so the type of IDs is unknown. Pass --dtype {' or '.join(DTYPES)}."
                )
            yield from without_ends(data.all_ids(0, options.dtype))
            return
        with InputFile(f"{place}.index", options.storage) as index:
            if index.size % END_BYTES:
                what = f"truncated: its size must be a multiple of {END_BYTES} bytes (got {index.size})"
                raise damaged(index.name, what, COPY_AGAIN)
            dtype = options.dtype or _dtype(data, index)
            ends = EndsColumn(index, 0, index.size // END_BYTES, "u8")
            yield from with_ends(data.all_ids(0, dtype), ends)


def _dtype(data: InputFile, index: InputFile) -> str:
    count = int(index.numbers(index.size - END_BYTES, 1, "u8")[0]) if index.size else 0
    for dtype, size in zip(DTYPES, (2, 4), strict=True):
        if count * size == data.size:
            return dtype
    what = f"must have {2 * count} or {4 * count} bytes, as {index.name} lists {count} IDs (got {data.size})"
    raise damaged(data.name, what, COPY_BOTH)


READER = Reader(read, DTYPES)
