"""Write counts files (counts_layout.py)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadCounts, EnvironmentFailure
from bpe.pretoken_counts.count_sums import check_total, exact_sum
from bpe.pretoken_counts.counts_facts import Arrays, CountsFacts
from bpe.pretoken_counts.counts_layout import (
    BLOCK,
    BLOCK_BYTES,
    BLOCK_PRETOKENS,
    FILE_HEADER,
    HASH_BYTES,
    MARK_BYTES,
    SUMS,
    Mark,
    write_end,
)
from bpe.pretoken_counts.merge_counts import joined
from tokenmill.inputs import _core
from tokenmill.stores import NO_OPTIONS, StorageOptions


class Written(NamedTuple):
    """The sum of the counts in a written file, and a mark for each block."""

    total: int
    marks: tuple[Mark, ...]


class CountsWriter:
    """Writes one counts file: call `write` with sorted counts, then `finish`. The caller opens and closes the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = file.write(FILE_HEADER)
        self._blocks = self._distinct = self._total = self._pretoken_bytes = 0
        self._marks: list[Mark] = []
        self._waiting: list[Arrays] = []
        self._waiting_pretokens = self._waiting_bytes = 0

    def write(self, arrays: Arrays) -> None:
        """Write counts with pretokens greater than all before. Dividing them among calls does not change the file."""
        self._waiting.append(arrays)
        self._waiting_pretokens += len(arrays[1])
        self._waiting_bytes += arrays[0].nbytes
        if self._waiting_pretokens >= BLOCK_PRETOKENS or self._waiting_bytes > BLOCK_BYTES:
            self._write_blocks(all_of_it=False)

    def _write_blocks(self, all_of_it: bool) -> None:
        """Write full blocks: at most BLOCK_PRETOKENS and BLOCK_BYTES, and at least one pretoken."""
        pretoken_bytes, ends, counts = joined(self._waiting)
        first = 0
        for block in cut_in_blocks((pretoken_bytes, ends, counts)):
            size = len(block[1])
            if first + size == len(ends) and size < BLOCK_PRETOKENS and not all_of_it:
                break  # the next counts may still fit in this block
            self._write_block(*block)
            first += size
        start = int(ends[first - 1]) if first else 0
        # A copy of less than a block, because a view would keep the whole array in memory.
        self._waiting = [
            (pretoken_bytes[start:].copy(), ends[first:] - np.uint64(start), counts[first:].copy())
        ]
        self._waiting_pretokens, self._waiting_bytes = len(ends) - first, pretoken_bytes.nbytes - start

    def _write_block(
        self, pretoken_bytes: NDArray[np.uint8], ends: NDArray[np.uint64], counts: NDArray[np.uint64]
    ) -> None:
        if not counts.all():
            raise BadCounts("pretoken: count must be at least 1 in a counts file (got 0)")
        lengths = np.diff(ends, prepend=np.uint64(0))
        columns = [_narrow(lengths), _narrow(counts)]
        head = BLOCK.pack(len(ends), columns[0].itemsize, columns[1].itemsize, 0, pretoken_bytes.nbytes)
        block = np.empty(
            len(head) + sum(column.nbytes for column in columns) + pretoken_bytes.nbytes, np.uint8
        )
        stop = 0
        for part in (np.frombuffer(head, np.uint8), *columns, pretoken_bytes):
            start, stop = stop, stop + part.nbytes
            block[start:stop] = part.view(np.uint8)  # copied once, because a pretoken may have megabytes
        key = pretoken_bytes[: min(int(ends[0]), MARK_BYTES)].tobytes()
        self._marks.append(Mark(key, self._offset, self._blocks))
        self._file.write(block.data)
        self._file.write(_core.xxh64(block.data, self._blocks).to_bytes(HASH_BYTES, "little"))
        self._offset += len(block) + HASH_BYTES
        self._blocks += 1
        self._distinct += len(ends)
        self._total += exact_sum(counts)
        self._pretoken_bytes += pretoken_bytes.nbytes

    def finish(self, facts: CountsFacts) -> Written:
        """Write the remaining counts, the footer and the tail."""
        self._write_blocks(all_of_it=True)
        check_total(self._total, "counts file")
        sums = (self._blocks, self._distinct, self._total, self._pretoken_bytes)
        write_end(self._file, facts, dict(zip(SUMS, sums, strict=True)), self._offset)
        return Written(self._total, tuple(self._marks))


def _narrow(values: NDArray[np.uint64]) -> NDArray[Any]:
    highest = int(values.max())
    for kind, limit in (("<u1", 1 << 8), ("<u2", 1 << 16), ("<u4", 1 << 32)):
        if highest < limit:
            return values.astype(kind)
    return values.astype("<u8")


def write_counts_file(
    path: str | os.PathLike[str],
    blocks: Iterable[Arrays],
    facts: CountsFacts,
    temporary: bool = False,
    storage_options: StorageOptions = NO_OPTIONS,
) -> Written:
    """Write a counts file, or an object if the path is a URL. It appears complete or not at all.

    temporary: write without renaming and syncing, because no other process reads the folder.
    """
    from bpe.output_file import open_output_file

    if not temporary:
        with open_output_file(path, storage_options) as file:
            return _write(file, blocks, facts)
    try:
        with Path(path).open("wb") as file:
            return _write(file, blocks, facts)
    except OSError as error:
        if isinstance(error, EnvironmentFailure):
            raise  # an error of reading the blocks
        raise EnvironmentFailure(
            f"{path}: cannot write ({error.strerror or error}). Choose another folder with --temp-dir."
        ) from None


def _write(file: BinaryIO, blocks: Iterable[Arrays], facts: CountsFacts) -> Written:
    writer = CountsWriter(file)
    for arrays in blocks:
        writer.write(arrays)
    return writer.finish(facts)


def cut_in_blocks(arrays: Arrays) -> Iterator[Arrays]:
    """Yield the counts in blocks of at most BLOCK_PRETOKENS and BLOCK_BYTES, or of one longer pretoken."""
    pretoken_bytes, ends, counts = arrays
    first = 0
    while first < len(ends):
        start = int(ends[first - 1]) if first else 0
        fitting = int(np.searchsorted(ends, np.uint64(start + BLOCK_BYTES), "right"))
        stop = min(max(fitting, first + 1), first + BLOCK_PRETOKENS)
        text = pretoken_bytes[start : int(ends[stop - 1])]
        yield text, ends[first:stop] - np.uint64(start), counts[first:stop]
        first = stop
