"""Sorted runs, which are counts in consecutive files, and the counts of several runs in a range of keys.

A merge of runs has one task per range. The task reads the blocks of every run that may have keys in the range, and
writes one file. These files in order are the sum. Ranges are bounded by marks, the first keys of blocks. The ranges
therefore have about equal sizes, and are found without reading the runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from bpe.pretoken_counts.counts_facts import Arrays
from bpe.pretoken_counts.counts_file import CountsFile
from bpe.pretoken_counts.counts_layout import Mark
from bpe.pretoken_counts.pretoken_order import pretoken_at
from tokenmill.stores import StorageOptions


class RunFile(NamedTuple):
    """A counts file without facts in the scratch. total, marks: see `Written`."""

    name: str
    size: int
    total: int
    marks: tuple[Mark, ...]


Run: TypeAlias = tuple[RunFile, ...]  # keys ascend within and across files


class OpenRun:
    """A run opened for reading, as a part of a `CountSet`."""

    def __init__(self, run: Run, place: str, options: StorageOptions) -> None:
        self._files = [_open(place, file.name, file.size, options) for file in run]
        self.pretoken_bytes = sum(file.pretoken_bytes for file in self._files)
        self.total = sum(file.total for file in self._files)

    def __len__(self) -> int:
        return sum(map(len, self._files))

    def largest_block_bytes(self) -> int:
        """Return the memory that the largest block takes."""
        return max(file.largest_block_bytes() for file in self._files)

    def blocks(self) -> Iterator[Arrays]:
        """Return all blocks, ascending."""
        return chain.from_iterable(file.blocks() for file in self._files)


class _Slice(NamedTuple):
    """The blocks of a file, starting at a mark."""

    name: str
    size: int
    mark: Mark


class KeyRange(NamedTuple):
    """The keys in [start, stop) of several runs.

    stop: None for no upper bound.
    runs: for each run, the slices of its files that may have keys in the range.
    """

    start: bytes
    stop: bytes | None
    runs: tuple[tuple[_Slice, ...], ...]

    def streams(self, place: str, options: StorageOptions) -> list[Iterator[Arrays]]:
        """Return the blocks of each run, limited to the range."""
        return [self._blocks(run, place, options) for run in self.runs]

    def _blocks(self, run: tuple[_Slice, ...], place: str, options: StorageOptions) -> Iterator[Arrays]:
        for name, size, mark in run:
            for arrays in _open(place, name, size, options).blocks_from(mark):
                text, ends, counts = arrays
                find = partial(bisect_left, range(len(ends)), key=partial(pretoken_at, arrays))
                first = find(self.start)
                stop = len(ends) if self.stop is None else find(self.stop)
                if first < stop:
                    begin = int(ends[first - 1]) if first else 0
                    yield (
                        text[begin : int(ends[stop - 1])],
                        ends[first:stop] - np.uint64(begin),
                        counts[first:stop],
                    )
                if stop < len(ends):
                    return


def cut_in_ranges(runs: Sequence[Run], range_bytes: int) -> list[KeyRange]:
    """Divide all keys of the runs into one or more ascending ranges of at most about `range_bytes` each."""
    marked = [[(mark, file) for file in run for mark in file.marks] for run in runs]
    keys = sorted(mark.key for marks in marked for mark, _ in marks)
    count = -(-sum(file.size for run in runs for file in run) // range_bytes)
    borders = {keys[len(keys) * number // count] for number in range(1, count)} - {keys[0]} if keys else set()
    starts = [b"", *sorted(borders)]
    return [
        KeyRange(start, stop, tuple(_slices(marks, start, stop) for marks in marked))
        for start, stop in zip(starts, [*starts[1:], None], strict=True)
    ]


def _slices(marks: Sequence[tuple[Mark, RunFile]], start: bytes, stop: bytes | None) -> tuple[_Slice, ...]:
    """Return the slices of a run that may have keys in the range: from the last mark before to the first mark after it.

    A mark has only the beginning of a key. The ends of ranges are marks too and equally short, so a key is less than
    the end of a range exactly if its mark is less.
    """
    key_of = partial(_key, marks)
    first = max(0, bisect_left(range(len(marks)), start, key=key_of) - 1)
    end = len(marks) if stop is None else bisect_left(range(len(marks)), stop, key=key_of)
    found: list[_Slice] = []
    for mark, file in marks[first:end]:
        if not found or found[-1].name != file.name:
            found.append(_Slice(file.name, file.size, mark))
    return tuple(found)


def _key(marks: Sequence[tuple[Mark, RunFile]], place: int) -> bytes:
    return marks[place][0].key


def _open(place: str, name: str, size: int, options: StorageOptions) -> CountsFile:
    return CountsFile(f"{place}/{name}", options, size)
