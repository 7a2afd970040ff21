"""Which decoded zarr chunks are kept, and in whose memory the next one is decoded.

Where rows are read at random from more zarr chunks than are kept, the least recently used one is the wrong one to
replace: its memory has long left the processor's cache, and decoding into it takes a sixth longer than into memory
that was just written (64 Ki tokens: 182 us a row, 157). So a zarr chunk takes turns with other newcomers in two
buffers, and gets a place for longer when there is one free, or when it is asked for again soon after it had to go.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]


class ChunkCache:
    """At most `capacity` decoded zarr chunks of some elements each, by number, and a spare one. For one thread at a
    time."""

    def __init__(self, capacity: int, chunk_elements: int, dtype: np.dtype[Any]) -> None:
        self._capacity = max(1, capacity - 1)
        self._chunk_elements = chunk_elements
        self._dtype = dtype
        self._kept: OrderedDict[int, tuple[Values, int]] = OrderedDict()  # the longest unused one first
        self._newcomer: tuple[int, Values, int] | None = None
        self._gone: OrderedDict[int, None] = OrderedDict()  # newcomers that had to go, of late
        self._spare: list[Values] = []

    def find(self, index: int) -> tuple[Values, int] | None:
        """A zarr chunk and how many of its first elements are there."""
        if self._newcomer is not None and self._newcomer[0] == index:
            return self._newcomer[1:]
        kept = self._kept.get(index)
        if kept is not None:
            self._kept.move_to_end(index)
        return kept

    def buffer(self) -> Values:
        """Memory to decode a zarr chunk into, for `put`."""
        return self._spare.pop() if self._spare else np.empty(self._chunk_elements, dtype=self._dtype)

    def put(self, index: int, values: Values, filled: int) -> None:
        """Keep what was decoded into a `buffer`, in place of what was there of the same zarr chunk."""
        if index in self._kept:
            self._spare.append(self._kept[index][0])
            self._kept[index] = values, filled
        elif self._newcomer is not None and self._newcomer[0] == index:
            self._spare.append(self._newcomer[1])
            self._newcomer = index, values, filled
        elif len(self._kept) < self._capacity or index in self._gone:
            self._gone.pop(index, None)
            self._kept[index] = values, filled
            if len(self._kept) > self._capacity:
                self._spare.append(self._kept.popitem(last=False)[1][0])
        else:
            if self._newcomer is not None:
                gone, memory, _ = self._newcomer
                self._spare.append(memory)
                self._gone[gone] = None
                if len(self._gone) > self._capacity // 2:
                    self._gone.popitem(last=False)
            self._newcomer = index, values, filled
        del self._spare[:-1]  # the one that was used last
