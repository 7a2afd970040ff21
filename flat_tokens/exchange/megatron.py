"""Megatron-LM's indexed dataset: PREFIX.bin holds ids alone, PREFIX.idx says what they are.

The index, little endian: the 9 bytes MMIDIDX\\0\\0, uint64 version 1, uint8 code of the ids' type, uint64 count of
sequences, uint64 count of document indices; then int32 tokens of each sequence, int64 byte of each in PREFIX.bin, int64
document indices: the sequence with which each document begins, and at last the count of sequences. A document is
sequences one behind the other: one for GPT, sentences for BERT. Modes of multimodal datasets, an int8 a sequence, may
follow; they are not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import ArgumentError, DatasetError, damaged
from flat_tokens.exchange.blocks import Block
from flat_tokens.exchange.formats import Contents, Reader, Writer
from flat_tokens.exchange.inputs import (
    COPY_AGAIN,
    COPY_BOTH,
    PIECE,
    EndsColumn,
    InputFile,
    ReadOptions,
    truncated,
)
from flat_tokens.exchange.positioned import PositionedFile

MAGIC = b"MMIDIDX\0\0"
VERSION = 1
DTYPES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 8: "uint16"}  # 6 and 7 are floats
WRITTEN = ("uint16", "int32")
HEADER = struct.Struct("<9sQBQQ")
LONGEST_SEQUENCE = 2**31 - 1


def write(folder: Path, contents: Contents, blocks: Iterator[Block]) -> list[str]:
    """See Writer. A sequence a document. ArgumentError for a document too long for an int32."""
    code = next(code for code, name in DTYPES.items() if name == contents.dtype.name)
    count, name = contents.documents, contents.split
    lengths_at = HEADER.size
    pointers_at = lengths_at + 4 * count
    documents_at = pointers_at + 8 * count
    with (folder / f"{name}.bin").open("wb") as ids_file, PositionedFile(folder / f"{name}.idx") as index:
        index.write(0, HEADER.pack(MAGIC, VERSION, code, count, count + 1))
        done, start, written = 0, 0, 0  # documents, the first token of the next one, tokens
        for ids, ends, _ in blocks:
            assert ends is not None
            ids_file.write(ids.astype(contents.dtype).data)
            bounds = np.concatenate([[start], ends + written])
            lengths = np.diff(bounds)
            if len(lengths) and lengths.max() > LONGEST_SEQUENCE:
                raise ArgumentError(
                    f"{name}: a document in Megatron's format has at most {LONGEST_SEQUENCE} tokens "
                    f"(got {lengths.max()}). Split it before converting."
                )
            index.write(lengths_at + 4 * done, lengths.astype("<i4"))
            index.write(pointers_at + 8 * done, (bounds[:-1] * contents.dtype.itemsize).astype("<i8"))
            index.write(documents_at + 8 * done, np.arange(done, done + len(ends), dtype="<i8"))
            done, start, written = done + len(ends), int(bounds[-1]), written + len(ids)
        index.write(documents_at + 8 * done, np.array([done], "<i8"))
    return [f"{name}.bin", f"{name}.idx"]


def read(place: str, options: ReadOptions) -> Iterator[Block]:
    """See Reader. place: the prefix, or either file."""
    prefix = place[:-4] if place.endswith((".bin", ".idx")) else place
    with (
        InputFile(f"{prefix}.idx", options.storage) as index,
        InputFile(f"{prefix}.bin", options.storage) as data,
    ):
        dtype, sequences, documents = _header(index)
        pointers_at = HEADER.size + 4 * sequences
        documents_at = pointers_at + 8 * sequences
        _check_size(index, documents_at + 8 * documents, sequences, options)
        ends = EndsColumn(index, documents_at + 8, documents - 1, "i8")
        if documents == 0 or index.numbers(documents_at, 1, "i8")[0] != 0:
            raise damaged(index.name, "document indices must begin with 0", COPY_AGAIN)
        used = 0
        for first in range(0, sequences, PIECE):
            count = min(PIECE, sequences - first)
            lengths = index.numbers(HEADER.size + 4 * first, count, "i4").astype(np.int64)
            pointers = index.numbers(pointers_at + 8 * first, count, "i8")
            _check_inside(index, data, first, lengths, pointers, dtype.itemsize)
            used += int(lengths.sum()) * dtype.itemsize
            yield from _sequences(data, lengths, pointers, dtype, first, ends)
        if sequences == 0:
            for found in ends.up_to(0):
                yield Block(np.empty(0, np.uint32), found)
        ends.check_finished(sequences, "sequences")
        if used < data.size:
            options.notes.append(
                f"{data.name}: {data.size - used} of {data.size} bytes are in no sequence of {index.name}. "
                "They are not imported."
            )


def _header(index: InputFile) -> tuple[np.dtype[Any], int, int]:
    """The ids' type, how many sequences, how many document indices."""
    if index.size < HEADER.size:
        what = f"truncated: a header has {HEADER.size} bytes (got {index.size})"
        raise damaged(index.name, what, COPY_AGAIN)
    magic, version, code, sequences, documents = HEADER.unpack(index.bytes(0, HEADER.size))
    if magic != MAGIC:
        raise DatasetError(f"{index.name}: not a Megatron index, which begins with {MAGIC!r} (got {magic!r})")
    if version != VERSION:
        raise DatasetError(f"{index.name}: version of the index must be {VERSION} (got {version})")
    if code not in DTYPES:
        raise DatasetError(f"{index.name}: type code of the IDs must be one of {DTYPES} (got {code})")
    return np.dtype(DTYPES[code]), sequences, documents


def _check_size(index: InputFile, expected: int, sequences: int, options: ReadOptions) -> None:
    if index.size == expected + sequences and sequences:
        options.notes.append(f"{index.name}: the modes of this multimodal index are not imported")
    elif index.size != expected:
        raise truncated(index.name, expected, index.size)


def _check_inside(
    index: InputFile,
    data: InputFile,
    first: int,
    lengths: npt.NDArray[np.int64],
    pointers: npt.NDArray[np.int64],
    itemsize: int,
) -> None:
    # in floats, so that no hostile sum wraps
    outside = (lengths < 0) | (pointers < 0) | (pointers.astype(float) + lengths * itemsize > data.size)
    outside |= pointers % itemsize != 0
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        what = f"must be within the {data.size} bytes of {data.name}"
        got = f"{lengths[at]} IDs from byte {pointers[at]}"
        raise damaged(f"{index.name}: sequence {first + at}", f"{what} (got {got})", COPY_BOTH)


def _sequences(
    data: InputFile,
    lengths: npt.NDArray[np.int64],
    pointers: npt.NDArray[np.int64],
    dtype: np.dtype[Any],
    first: int,
    documents: EndsColumn,
) -> Iterator[Block]:
    """The blocks of some sequences; those that lie one behind the other are read at once."""
    token_ends = np.cumsum(lengths)
    bounds = np.concatenate([[0], token_ends])
    breaks = np.flatnonzero(pointers[1:] != pointers[:-1] + lengths[:-1] * dtype.itemsize) + 1
    found = list(documents.up_to(first + len(lengths)))
    # Ends of documents, from sequences to tokens; one may stand before the first of these sequences.
    ends = bounds[np.concatenate([np.empty(0, np.int64), *found]) - first]
    done, taken = 0, 0
    for low, high in zip([0, *breaks], [*breaks, len(lengths)], strict=True):
        for ids in data.ids(int(pointers[low]), int(bounds[high] - bounds[low]), dtype):
            stop = int(np.searchsorted(ends, done + len(ids), side="right"))
            yield Block(ids, ends[taken:stop] - done)
            taken, done = stop, done + len(ids)
    if taken < len(ends):  # of sequences without tokens
        yield Block(np.empty(0, np.uint32), ends[taken:] - done)


WRITER = Writer(write, WRITTEN)
READER = Reader(read)
