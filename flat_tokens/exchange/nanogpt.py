"""nanoGPT's files: the ids of all documents in order, uint16, without a header. A token ends each document.

nanoGPT's data scripts write train.bin and val.bin by numpy.memmap, and its train.py reads them as uint16. Ids above
65,535 need uint32, which the reader must know.

Shards of llm.c and modded-nanogpt have the same ids after a header of 256 int32: a magic number, a version, the count
of ids, zeros. The magic number and the version determine the type of the ids. A file that begins like any other
header, or like a file of another kind, is refused: its bytes would become tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from flat_tokens.errors import ArgumentError, DatasetError
from flat_tokens.exchange.blocks import Block
from flat_tokens.exchange.formats import Contents, Reader, Writer
from flat_tokens.exchange.inputs import InputFile, ReadOptions, truncated, without_ends

DTYPES = ("uint16", "uint32")
FILE_NAMES = {"train": "train.bin", "validation": "val.bin"}
TEXT_BYTES, TEXT_CHARACTERS = 512, 8  # at the beginning of a file that is taken for text
# Files of 16 ids of 32 bits are known; vocabularies below 2^20 have upper halves below 16.
WIDE_BYTES, HIGHEST_UPPER = 64, 16
HEADER_BYTES = 1024
SHARDS = {(20240520, 1): "uint16", (20240801, 7): "uint32"}  # GPT-2's and Llama 3's ids
DATES = range(20200101, 20400101)  # magic numbers are dates
SIGNATURES = {
    b"\x93NUMPY": "a NumPy file. Pass --from npy.",
    b"MMIDIDX": "a Megatron index. Pass --from megatron.",
    b"PAR1": "a Parquet file. Use tokenmill convert.",
    b"PK\x03\x04": "a zip archive. Unpack it first.",
    b"\x1f\x8b\x08": "a gzip file. Unpack it first.",
    b"\x28\xb5\x2f\xfd": "a zstd file. Unpack it first.",
}


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """See Writer."""
    name = FILE_NAMES[contents.split]
    with (folder / name).open("wb") as file:
        for ids, _, _ in blocks:
            file.write(ids.astype(contents.dtype).data)
    return [name]


def read(place: str, options: ReadOptions) -> Iterator[Block]:
    """See Reader."""
    with InputFile(place, options.storage) as file:
        shard = _shard_header(file)
        if shard is not None:
            dtype, count = shard
            if options.dtype not in (None, dtype):
                raise ArgumentError(
                    f"{file.name}: its header says {dtype} (got --dtype {options.dtype}). Omit --dtype."
                )
            size = np.dtype(dtype).itemsize
            if file.size != HEADER_BYTES + count * size:
                raise truncated(file.name, HEADER_BYTES + count * size, file.size)
            yield from without_ends(file.ids(HEADER_BYTES, count, dtype))
            return
        _refuse_text(file)
        if options.dtype is None:
            _refuse_wide(file)
        yield from without_ends(file.all_ids(0, options.dtype or DTYPES[0]))


def _shard_header(file: InputFile) -> tuple[str, int] | None:
    """The type and the count of the ids of a shard; None without a header. Raise DatasetError for any other header."""
    head = bytes(file.bytes(0, min(file.size, HEADER_BYTES)))
    for signature, kind in SIGNATURES.items():
        if head.startswith(signature):
            raise DatasetError(f"{file.name}: not a file of IDs but {kind}")
    if len(head) < HEADER_BYTES:
        return None
    magic, version, count, *rest = np.frombuffer(head, "<i4").tolist()
    if (magic, version) in SHARDS:
        return SHARDS[magic, version], count
    if magic and ((magic in DATES and 0 <= version < 100) or not any(rest)):
        raise DatasetError(
            f"{file.name}: unknown header (got {magic}, {version}, {count}). "
            f"Remove it, for example with tail -c +{HEADER_BYTES + 1}."
        )
    return None


def _refuse_text(file: InputFile) -> None:
    """Raise DatasetError for a file that begins as English or code does: ids of 16 bits do not do so by chance."""
    head = bytes(file.bytes(0, min(file.size, TEXT_BYTES)))
    if len(set(head)) > TEXT_CHARACTERS and re.fullmatch(rb"[\t\n\r -~]+", head):
        raise DatasetError(f"{file.name}: not a file of IDs but text. Use tokenmill convert.")


def _refuse_wide(file: InputFile) -> None:
    """Raise DatasetError for a file that begins as ids of 32 bits do, whose upper halves would be every second id: 0,
    or few where the others are many."""
    if file.size % 4 or file.size < WIDE_BYTES:
        return
    low, high = file.numbers(0, min(file.size, 1 << 16) // 2, "u2").reshape(-1, 2).T
    if low.any() and (high.max() == 0 or high.max() < HIGHEST_UPPER <= low.max()):
        raise DatasetError(
            f"{file.name}: IDs look like uint32, since every second uint16 is at most {high.max()}. "
            "Pass --dtype uint32 or --dtype uint16."
        )


WRITER = Writer(write, DTYPES, is_fixed=True, marks_documents=False)
READER = Reader(read, DTYPES)
