"""numpy's files: NAME.npy, the ids of all documents, and NAME.offsets.npy, int64: where each begins, and at last the
count of ids.

Both are plain npy files (version 1.0 to 3.0) of one dimension, for numpy.load with mmap_mode="r".
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from flat_tokens.errors import DatasetError, damaged, printable
from flat_tokens.exchange.blocks import Block
from flat_tokens.exchange.formats import Contents, Reader, Writer
from flat_tokens.exchange.inputs import (
    COPY_AGAIN,
    EndsColumn,
    InputFile,
    ReadOptions,
    exists,
    with_ends,
    without_ends,
)

DTYPES = ("uint16", "uint32")
HEADER_BYTES = 2**16  # more than any header of an array of numbers


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """See Writer."""
    name, offsets_name = f"{contents.split}.npy", f"{contents.split}.offsets.npy"
    with (folder / name).open("wb") as ids_file, (folder / offsets_name).open("wb") as offsets_file:
        ids_file.write(_header(contents.dtype, contents.tokens))
        offsets_file.write(_header(np.dtype("<i8"), contents.documents + 1))
        offsets_file.write(bytes(8))
        written = 0
        for ids, ends, _ in blocks:
            assert ends is not None
            ids_file.write(ids.astype(contents.dtype).data)
            offsets_file.write((ends + written).astype("<i8").data)
            written += len(ids)
    return [name, offsets_name]


def _header(dtype: np.dtype[Any], count: int) -> bytes:
    buffer = io.BytesIO()
    described = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
    npy_format.write_array_header_1_0(buffer, described)
    return buffer.getvalue()


def read(place: str, options: ReadOptions) -> Iterator[Block]:
    """See Reader. Without NAME.offsets.npy nothing is known of documents."""
    offsets_place = f"{place.removesuffix('.npy')}.offsets.npy"
    with InputFile(place, options.storage) as ids_file:
        dtype, count, offset = _parse_header(ids_file)
        ids = ids_file.ids(offset, count, dtype)
        if not exists(offsets_place, options.storage):
            yield from without_ends(ids)
            return
        with InputFile(offsets_place, options.storage) as offsets_file:
            offsets_dtype, offsets_count, at = _parse_header(offsets_file)
            if offsets_count == 0 or offsets_file.numbers(at, 1, offsets_dtype)[0] != 0:
                raise damaged(offsets_file.name, "first entry must be 0", COPY_AGAIN)
            ends = EndsColumn(offsets_file, at + offsets_dtype.itemsize, offsets_count - 1, offsets_dtype)
            yield from with_ends(ids, ends)


def _parse_header(file: InputFile) -> tuple[np.dtype[Any], int, int]:
    """The type, how many, and the byte at which they begin. DatasetError for what is no array of integers."""
    start = io.BytesIO(file.bytes(0, min(file.size, HEADER_BYTES)))
    try:
        version = npy_format.read_magic(start)
        if version == (1, 0):
            shape, in_columns, dtype = npy_format.read_array_header_1_0(start)
        else:
            shape, in_columns, dtype = npy_format.read_array_header_2_0(start)
    except Exception as error:  # of a damaged header: ValueError, SyntaxError, TokenError, ...
        raise damaged(file.name, f"not a .npy file ({printable(str(error), 80)})", COPY_AGAIN) from None
    if (
        len(shape) != 1
        or dtype.kind not in "iu"
        or (dtype.byteorder == ">" or (in_columns and len(shape) > 1))
    ):
        what = "must be a one-dimensional array of little-endian integers"
        raise DatasetError(f"{file.name}: {what} (got {dtype} of shape {shape})")
    return dtype, shape[0], start.tell()


WRITER = Writer(write, DTYPES)
READER = Reader(read)
