"""Megatron-LM's indexed dataset: PREFIX.bin holds the IDs, PREFIX.idx describes them.

The index, little endian: the 9 bytes MMIDIDX\\0\\0, uint64 version 1, uint8 code of the ID type, uint64 count of
sequences, uint64 count of document indices; then int32 tokens of each sequence, int64 byte of each in PREFIX.bin, int64
document indices: the first sequence of each document, and the count of sequences. A document is one sequence for GPT, a
sequence per sentence for BERT. The modes of multimodal datasets, an int8 per sequence at the end, are not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import ArgumentError, DatasetError, damaged
from flat_tokens.exchange.files import COPY_AGAIN, COPY_BOTH, InputFile, pieces, with_ends
from flat_tokens.exchange.formats import Contents, ReadOptions
from flat_tokens.split_writer import Block

MAGIC = b"MMIDIDX\0\0"
VERSION = 1
DTYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 8: "uint16"}  # 6 and 7 are floats
HEADER = struct.Struct("<9sQBQQ")
MAX_SEQUENCE = 2**31 - 1


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """Write a sequence per document. Raise ArgumentError for a document too long for an int32."""
    code = next(code for code, name in DTYPES.items() if name == contents.dtype.name)
    count, name = contents.documents, contents.split
    firsts, documents = HEADER.size + 4 * count, HEADER.size + 12 * count  # bytes of the index
    with (folder / f"{name}.bin").open("wb") as ids_file, (folder / f"{name}.idx").open("wb") as index:

        def put(offset: int, values: npt.NDArray[Any], dtype: str) -> None:
            index.seek(offset)
            index.write(values.astype(dtype).data)

        index.write(HEADER.pack(MAGIC, VERSION, code, count, count + 1))
        done, start, written = 0, 0, 0  # documents, the first token of the next one, tokens
        for ids, ends, _ in blocks:
            assert ends is not None
            ids_file.write(ids.astype(contents.dtype).data)
            bounds = np.concatenate([[start], ends + written])
            lengths = np.diff(bounds)
            if lengths.max(initial=0) > MAX_SEQUENCE:
                raise ArgumentError(
                    f"{name}: a document in Megatron's format has at most {MAX_SEQUENCE} tokens "
                    f"(got {lengths.max()}). Split it before converting."
                )
            put(HEADER.size + 4 * done, lengths, "<i4")
            put(firsts + 8 * done, bounds[:-1] * contents.dtype.itemsize, "<i8")
            put(documents + 8 * done, np.arange(done, done + len(ends) + 1), "<i8")
            done, start, written = done + len(ends), int(bounds[-1]), written + len(ids)
        put(documents + 8 * done, np.array([done]), "<i8")
    return [f"{name}.bin", f"{name}.idx"]


def read(path: Path, options: ReadOptions) -> Iterator[Block]:
    """path: the prefix, or either file."""
    prefix = str(path)[:-4] if path.suffix in (".bin", ".idx") else str(path)
    index, data = InputFile(Path(f"{prefix}.idx")), InputFile(Path(f"{prefix}.bin"))
    dtype, count, documents = _header(index, options)
    starts = index.column(HEADER.size + 12 * count, "i8", documents)
    if documents == 0 or starts[:1][0] != 0:
        raise damaged(index.name, "document indices must begin with 0", COPY_AGAIN)
    sequences = _Sequences(index, data, count, dtype)
    for part, ends, _ in with_ends(sequences, starts.without_first(), index.name, "sequences"):
        assert ends is not None
        yield from _documents(data, dtype, part[:, 0], part[:, 1], ends)
    if sequences.used_bytes < data.size:
        options.notes.append(
            f"{data.name}: {data.size - sequences.used_bytes} of {data.size} bytes are in no sequence of "
            f"{index.name}. They are not imported."
        )


def _header(index: InputFile, options: ReadOptions) -> tuple[np.dtype[Any], int, int]:
    """Return the type of the IDs and the counts of sequences and of document indices."""
    head = index.head(HEADER.size)
    if len(head) < HEADER.size:
        what = f"truncated: a header has {HEADER.size} bytes (got {index.size})"
        raise damaged(index.name, what, COPY_AGAIN)
    magic, version, code, sequences, documents = HEADER.unpack(head)
    if magic != MAGIC:
        raise DatasetError(f"{index.name}: not a Megatron index, which begins with {MAGIC!r} (got {magic!r})")
    if version != VERSION:
        raise DatasetError(f"{index.name}: version of the index must be {VERSION} (got {version})")
    if code not in DTYPES:
        raise DatasetError(f"{index.name}: type code of the IDs must be one of {DTYPES} (got {code})")
    expected = HEADER.size + 12 * sequences + 8 * documents
    if sequences and index.size == expected + sequences:
        options.notes.append(f"{index.name}: the modes of this multimodal index are not imported")
    elif index.size != expected:
        raise damaged(index.name, f"must have {expected} bytes by its header (got {index.size})", COPY_AGAIN)
    return np.dtype(DTYPES[code]), sequences, documents


class _Sequences:
    """Lengths and first bytes of sequences, int64[n, 2] per slice, inside the file of IDs."""

    def __init__(self, index: InputFile, data: InputFile, count: int, dtype: np.dtype[Any]) -> None:
        self._lengths = index.column(HEADER.size, "i4", count)
        self._firsts = index.column(HEADER.size + 4 * count, "i8", count)
        self._data, self._itemsize = data, dtype.itemsize
        self.used_bytes = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, key: slice) -> npt.NDArray[np.int64]:
        lengths, firsts = self._lengths[key].astype(np.int64), self._firsts[key]
        # as floats, so that no hostile sum wraps
        outside = (lengths < 0) | (firsts < 0) | (firsts % self._itemsize != 0)
        outside |= firsts.astype(float) + lengths * self._itemsize > self._data.size
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            what = f"must be within the {self._data.size} bytes of {self._data.name}"
            got = f"{lengths[at]} IDs from byte {firsts[at]}"
            where = f"{self._lengths.name}: sequence {key.indices(len(self))[0] + at}"
            raise damaged(where, f"{what} (got {got})", COPY_BOTH)
        self.used_bytes += int(lengths.sum()) * self._itemsize
        return np.stack([lengths, firsts], axis=1)


def _documents(
    data: InputFile,
    dtype: np.dtype[Any],
    lengths: npt.NDArray[np.int64],
    firsts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
) -> Iterator[Block]:
    """Yield the blocks of some sequences. Neighbors in the file are read as one run. ends: in sequences."""
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    token_ends = bounds[ends]
    breaks = np.flatnonzero(firsts[1:] != firsts[:-1] + lengths[:-1] * dtype.itemsize) + 1
    done = 0
    for low, high in zip([0, *breaks], [*breaks, len(lengths)], strict=True):
        count = int(np.searchsorted(token_ends, bounds[high], side="right"))
        ids = data.column(int(firsts[low]) if len(firsts) else 0, dtype, int(bounds[high] - bounds[low]))
        yield from pieces(ids, token_ends[done:count] - bounds[low], 0, len(ids))
        done = count
