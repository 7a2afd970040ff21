"""All tokens of a raw array as one array in memory: every file mapped where the one before it ends.

Rows are then gathered by one numpy call, wherever zarr chunks end. Addresses for the whole array are reserved
at once; a file is mapped into its place, and its ids are compared with the largest allowed one, when it is
touched first. Possible where each file is one zarr chunk as it is, of whole pages, and there are not too many
for the kernel's table of mappings.

Invariant: what was touched is in place and sound. What was not reads as zeros, so nothing is read untouched.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.storage.mapping import map_into, reserve
from flat_tokens.storage.zarr_metadata import StoredArray

LARGEST_MAP_COUNT = 2**14  # the kernel allows a process 65,530 mappings in all

Int64 = npt.NDArray[np.int64]


class MappedStream:
    """values: the elements, dtype[element_count], read-only; only what `touch` was called for is there.

    check(values, first) raises for elements that must not be. Safe to use from several threads: what is
    mapped twice is the same twice."""

    def __init__(self, stored: StoredArray, check: Callable[[npt.NDArray[Any], int], None]) -> None:
        dtype = np.dtype(stored.dtype)
        self._stored = stored
        self._check = check
        self._chunk_bytes = stored.chunk_elements * dtype.itemsize
        self._chunk_count = -(-stored.element_count // stored.chunk_elements)
        self._reserved = reserve(self._chunk_count * self._chunk_bytes)
        self.values: npt.NDArray[Any] = self._reserved.view(dtype)[: stored.element_count]
        self._is_mapped = np.zeros(self._chunk_count, dtype=np.bool_)
        self._is_sound = np.zeros(self._chunk_count, dtype=np.bool_)

    @staticmethod
    def fits(stored: StoredArray) -> bool:
        """Whether an array lies in its files so that they can be mapped one after the other."""
        chunk_bytes = stored.chunk_elements * np.dtype(stored.dtype).itemsize
        return (
            not stored.codecs.filters
            and stored.codecs.compressor is None
            and not stored.codecs.crc32c
            and not stored.sharded
            and chunk_bytes % mmap.PAGESIZE == 0
            and 0 < stored.element_count <= LARGEST_MAP_COUNT * stored.chunk_elements
        )

    def touch(self, starts: Int64, stops: Int64, is_alone: bool = False) -> None:
        """Make the elements [starts[i], stops[i]), none of them empty, readable. Cost: 10 us, and for each file
        not touched before 20 us and 0.3 ns an element. is_alone: compare those ranges and not the whole files,
        for those who will not need more of them soon. DatasetError, one line."""
        chunk = self._stored.chunk_elements
        opened = np.bincount(starts // chunk, minlength=self._chunk_count + 1)
        closed = np.bincount((stops - 1) // chunk + 1, minlength=self._chunk_count + 1)
        is_wanted = np.cumsum(opened - closed)[: self._chunk_count] > 0
        is_done = self._is_mapped if is_alone else self._is_sound
        for index in np.flatnonzero(is_wanted & ~is_done).tolist():
            if not self._is_mapped[index]:
                path = self._stored.file_name(index)
                with self._stored.opening():
                    map_into(self._reserved, index * self._chunk_bytes, self._chunk_bytes, path, not is_alone)
                self._is_mapped[index] = True
            if not is_alone:
                first = index * chunk
                self._check(self.values[first : first + chunk], first)
                self._is_sound[index] = True
        if is_alone:
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                self._check(self.values[start:stop], start)
