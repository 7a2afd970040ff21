"""Sorted runs: counts in files that follow one another, and what several runs have in a range of keys.

A merge of runs is a task for each range: it reads of every run the blocks that may hold keys of the range, and writes
one file, and these files in order are the sum. Ranges are cut at marks of the runs, the beginnings of their blocks: so
they are about equal, and nothing is read to find them.
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
    """A counts file without facts in the scratch; total, marks: see `Written`."""

    name: str
    size: int
    total: int
    marks: tuple[Mark, ...]


Run: TypeAlias = tuple[RunFile, ...]  # ascending, from one to the next too


class OpenRun:
    """A run for reading, as a part of a `CountSet`."""

    def __init__(self, run: Run, place: str, options: StorageOptions) -> None:
        self._files = [_open(place, file.name, file.size, options) for file in run]
        self.pretoken_bytes = sum(file.pretoken_bytes for file in self._files)
        self.total = sum(file.total for file in self._files)

    def __len__(self) -> int:
        return sum(map(len, self._files))

    def largest_block_bytes(self) -> int:
        """What the largest block takes in memory."""
        return max(file.largest_block_bytes() for file in self._files)

    def blocks(self) -> Iterator[Arrays]:
        """All blocks, ascending."""
        return chain.from_iterable(file.blocks() for file in self._files)


class _Slice(NamedTuple):
    """The blocks of a file from a mark on."""

    name: str
    size: int
    mark: Mark


class KeyRange(NamedTuple):
    """The keys in [start, stop) of some runs, stop None: all from `start` on; runs: the slices of files to look at."""

    start: bytes
    stop: bytes | None
    runs: tuple[tuple[_Slice, ...], ...]

    def streams(self, place: str, options: StorageOptions) -> list[Iterator[Arrays]]:
        """What each run has of it, in blocks."""
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
    """All keys of the runs, in ranges of about so many bytes of the runs each or fewer, one at least; ascending."""
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
    """Where a run may have keys of the range: from the last mark before it up to the first one behind it.

    A mark has the beginning of a key only, but a border is a mark, as short: so the key of a mark that is less than a
    border is less, too, and that of no other mark is.
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
