"""nanoGPT's files: the IDs of all documents, uint16, without a header. A token ends each document.

nanoGPT writes train.bin and val.bin with numpy.memmap and reads them as uint16. IDs above 65,535 need uint32, which the
reader must know.

Shards of llm.c and modded-nanogpt have the same IDs after a header of 256 int32: a magic number, a version, the count
of IDs, zeros. Magic number and version determine the type of the IDs. A file that starts like any other header, or like
a file of another kind, is an error, because its bytes would become tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from flat_tokens.errors import ArgumentError, DatasetError, damaged
from flat_tokens.exchange.files import COPY_AGAIN, InputFile, without_ends
from flat_tokens.exchange.formats import Contents, ReadOptions
from flat_tokens.split_writer import Block

FILE_NAMES = {"train": "train.bin", "validation": "val.bin"}
TEXT_BYTES, TEXT_CHARACTERS = 512, 8  # of the start of a file that counts as text
# Smaller files may be ambiguous. Vocabularies below 2^20 have upper halves below 16.
MIN_WIDE_BYTES, MAX_UPPER_HALF = 64, 15
HEADER_BYTES = 1024
SHARDS = {(20240520, 1): "uint16", (20240801, 7): "uint32"}  # IDs of GPT-2 and Llama 3
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
    """Write one file."""
    name = FILE_NAMES[contents.split]
    with (folder / name).open("wb") as file:
        for ids, _, _ in blocks:
            file.write(ids.astype(contents.dtype).data)
    return [name]


def read(path: Path, options: ReadOptions) -> Iterator[Block]:
    """Yield IDs without ends."""
    file = InputFile(path)
    shard = _shard_header(file)
    if shard is None:
        _refuse_text(file)
        if options.dtype is None:
            _refuse_wide(file)
        yield from without_ends(file.column(0, options.dtype or "uint16"))
        return
    dtype, count = shard
    if options.dtype not in (None, dtype):
        raise ArgumentError(
            f"{file.name}: its header says {dtype} (got --dtype {options.dtype}). Omit --dtype."
        )
    expected = HEADER_BYTES + count * np.dtype(dtype).itemsize
    if file.size != expected:
        raise damaged(file.name, f"must have {expected} bytes by its header (got {file.size})", COPY_AGAIN)
    yield from without_ends(file.column(HEADER_BYTES, dtype))


def _shard_header(file: InputFile) -> tuple[str, int] | None:
    """Return type and count of the IDs of a shard, None without a header. Raise DatasetError for another header."""
    head = file.head(HEADER_BYTES)
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
    """Raise DatasetError for a file that starts like English or code, which 16-bit IDs never do by chance."""
    head = file.head(TEXT_BYTES)
    if len(set(head)) > TEXT_CHARACTERS and re.fullmatch(rb"[\t\n\r -~]+", head):
        raise DatasetError(f"{file.name}: not a file of IDs but text. Use tokenmill convert.")


def _refuse_wide(file: InputFile) -> None:
    """Raise DatasetError if every second ID is an upper half: 0, or small while the others are large."""
    if file.size % 4 or file.size < MIN_WIDE_BYTES:
        return
    low, high = file.numbers(0, min(file.size, 1 << 16) // 2, "u2").reshape(-1, 2).T
    if low.any() and (high.max() == 0 or high.max() <= MAX_UPPER_HALF < low.max()):
        raise DatasetError(
            f"{file.name}: IDs look like uint32, since every second uint16 is at most {high.max()}. "
            "Pass --dtype uint32 or --dtype uint16."
        )
