"""Files of token IDs, written and read in blocks.

text: decimal IDs separated by white space. A line ends after each special token, so it usually holds one document.
.npy: a one-dimensional uint32 array. .bin: little-endian uint32 values.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadArgument, InvalidText, shown

IdsFormat = Literal["text", "npy", "bin"]
_OTHERS: Final = (".npz", ".parquet", ".arrow", ".pt", ".pkl", ".h5", ".safetensors", ".zarr")
_BLOCK: Final = 1 << 20
_MAX_DIGITS: Final = 10  # digits of an ID below 2^32


def format_of(path: str) -> IdsFormat:
    """Return the format by file extension: .npy, .bin, otherwise text. Raise BadArgument for other binary formats."""
    suffix = Path(path).suffix
    if suffix in _OTHERS:
        raise BadArgument(
            f"{path}: unsupported extension for IDs (got {suffix}). Use .npy, .bin or .txt, or pass --format."
        )
    return "npy" if suffix == ".npy" else "bin" if suffix == ".bin" else "text"


def write_ids(
    file: BinaryIO,
    documents: Iterable[Iterable[list[int]]],
    form: IdsFormat,
    line_ends: Collection[int] | None,
) -> int:
    """Write documents, given as lists of IDs, and return the number of IDs.

    file: seekable for .npy.
    line_ends: IDs after which a line ends in text; a line also ends after each document with IDs. None: each document
        is a line, which may be empty.
    """
    if form == "text":
        return _write_text(file, documents, frozenset(line_ends or ()), line_ends is None)
    if form == "npy":
        # The header has room for any length. It is written again with the length at the end.
        _write_header(file, 0)
    count = 0
    for ids in chain.from_iterable(documents):
        file.write(np.array(ids, "<u4").tobytes())
        count += len(ids)
    if form == "npy":
        end = file.tell()
        file.seek(0)
        _write_header(file, count)
        file.seek(end)
    return count


def _write_header(file: BinaryIO, count: int) -> None:
    header = {"descr": "<u4", "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call,unused-ignore]


def _write_text(
    file: BinaryIO, documents: Iterable[Iterable[list[int]]], line_ends: frozenset[int], are_lines: bool
) -> int:
    count = 0
    for id_lists in documents:
        gap = b""
        for ids in id_lists:
            for line in _lines(ids, line_ends):
                file.write(gap + " ".join(map(str, line)).encode())
                gap = b"\n" if line[-1] in line_ends else b" "
            count += len(ids)
        if gap or are_lines:
            file.write(b"\n")
    return count


def _lines(ids: list[int], line_ends: frozenset[int]) -> Iterator[list[int]]:
    """Yield the IDs of each line: up to an ID that ends a line, and after the last one."""
    start = 0
    if not line_ends.isdisjoint(ids):
        for stop, id_ in enumerate(ids, 1):
            if id_ in line_ends:
                yield ids[start:stop]
                start = stop
    if start < len(ids):
        yield ids[start:]


def read_ids(file: BinaryIO, form: IdsFormat, where: str) -> Iterator[NDArray[np.int64] | list[int]]:
    """Yield blocks of IDs. InvalidText names the file and the first value that is not an ID."""
    if form == "npy":
        if not file.seekable():  # a pipe
            file = io.BytesIO(file.read())
        if file.read(6) != b"\x93NUMPY":
            raise InvalidText(f"{where}: not a .npy file. Try --format text or bin.")
        file.seek(0)
        try:
            array = np.load(file, allow_pickle=False)
        except Exception as error:  # damaged headers raise SyntaxError, MemoryError and others
            raise InvalidText(f"{where}: not a valid .npy file ({shown(str(error), 100)})") from None
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InvalidText(
                f"{where}: must be a one-dimensional array of integers (got {array.ndim}-dimensional {array.dtype})"
            )
        for start in range(0, len(array), _BLOCK):
            yield array[start : start + _BLOCK].astype(np.int64)
        return
    if form == "bin":
        offset = 0
        while block := file.read(4 * _BLOCK):
            if len(block) % 4:
                raise InvalidText(
                    f"{where}: size must be a multiple of 4 bytes (got {offset + len(block)}). Check whether the file "
                    "is complete."
                )
            offset += len(block)
            yield np.frombuffer(block, "<u4").astype(np.int64)
        return
    yield from _read_text(file, where)


def _read_text(file: BinaryIO, where: str) -> Iterator[list[int]]:
    rest, number = b"", 0
    while True:
        block = file.read(_BLOCK)
        words = (rest + block).split()
        # A number may continue in the next block, unless it is too long already.
        continues = block and words and not block[-1:].isspace() and len(words[-1]) <= _MAX_DIGITS
        rest = words.pop() if continues else b""
        ids = []
        for word in words:
            if not word.isdigit() or len(word) > _MAX_DIGITS:
                fix = ". Separate IDs with white space." if b"," in word else ""
                raise InvalidText(
                    f"{where}: ID number {number} must be an integer "
                    f"(got {shown(word.decode('utf-8', 'replace'))}){fix}"
                )
            ids.append(int(word))
            number += 1
        if ids:
            yield ids
        if not block:
            return
