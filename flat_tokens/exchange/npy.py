"""NumPy's files: NAME.npy with the IDs of all documents, and NAME.offsets.npy, int64, with their offsets.

The offsets are the first ID of each document and, last, the count of IDs. Both files are plain .npy arrays of one
dimension (version 1.0 to 3.0), for numpy.load with mmap_mode="r".
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format

from flat_tokens.errors import DatasetError, cause, damaged
from flat_tokens.exchange.files import COPY_AGAIN, Column, InputFile, with_ends, without_ends
from flat_tokens.exchange.formats import Contents, ReadOptions
from flat_tokens.split_writer import Block

HEADER_BYTES = 2**16  # more than any header of an array of numbers


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """Write both files."""
    name, offsets_name = f"{contents.split}.npy", f"{contents.split}.offsets.npy"
    with (folder / name).open("wb") as ids_file, (folder / offsets_name).open("wb") as offsets_file:
        _write_header(ids_file, contents.dtype, contents.tokens)
        _write_header(offsets_file, np.dtype("<i8"), contents.documents + 1)
        offsets_file.write(bytes(8))
        written = 0
        for ids, ends, _ in blocks:
            assert ends is not None
            ids_file.write(ids.astype(contents.dtype).data)
            offsets_file.write((ends + written).astype("<i8").data)
            written += len(ids)
    return [name, offsets_name]


def _write_header(file: BinaryIO, dtype: np.dtype[Any], count: int) -> None:
    described = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
    npy_format.write_array_header_1_0(file, described)


def read(path: Path, options: ReadOptions) -> Iterator[Block]:
    """Without NAME.offsets.npy the documents are unknown."""
    offsets_path = Path(f"{str(path).removesuffix('.npy')}.offsets.npy")
    ids = _array(InputFile(path))
    if not offsets_path.is_file():
        yield from without_ends(ids)
        return
    offsets = _array(InputFile(offsets_path))
    if len(offsets) == 0 or offsets[:1][0] != 0:
        raise damaged(offsets.name, "first entry must be 0", COPY_AGAIN)
    yield from with_ends(ids, offsets.without_first(), offsets.name)


def _array(file: InputFile) -> Column:
    """Return the numbers of a file. Raise DatasetError if they are not an array of integers."""
    start = io.BytesIO(file.head(HEADER_BYTES))
    try:
        if npy_format.read_magic(start) == (1, 0):
            shape, _, dtype = npy_format.read_array_header_1_0(start)
        else:
            shape, _, dtype = npy_format.read_array_header_2_0(start)
    except Exception as error:  # ValueError, SyntaxError, TokenError, ...
        raise damaged(file.name, f"not a .npy file ({cause(error)})", COPY_AGAIN) from None
    if len(shape) != 1 or dtype.kind not in "iu" or dtype.byteorder == ">":
        what = "must be a one-dimensional array of little-endian integers"
        raise DatasetError(f"{file.name}: {what} (got {dtype} of shape {shape})")
    return file.column(start.tell(), dtype, shape[0])
