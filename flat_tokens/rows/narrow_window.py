"""Rows in memory in half the room: ids of 16 bits, and the start flags in a bit each.

Where zarr chunks are decoded, most of what is left beside the decoding is memory that does not stay in the cache: a
window is written once and read once, rows in any order. So a zarr chunk is decoded to memory that stays in the cache
and narrowed from there. For arrays whose ids fit 16 bits (vocabularies up to 65,536), where the loops are built
(flat_tokens/native/narrow_rows.hpp); the two functions in numpy are their specification
(tests/flat_tokens/test_narrow_window.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.batch import Batch
from flat_tokens.built import core
from flat_tokens.rows.row_cut import Int64, RowCut, Uint32

LARGEST_ID = 2**16 - 1
WORD_BITS = 64

Uint16 = npt.NDArray[np.uint16]
Uint64 = npt.NDArray[np.uint64]


def narrow_with_numpy(encoded: Uint32, ids: Uint16, start_bits: Uint64, at: int) -> int:
    """Put encoded tokens to the places from `at` on; the largest of them, 0 of none.

    ids: uint16[places]; start_bits: uint64[ceil(places / 64)], bit i % 64 of word i / 64 says whether place i has a
    start, other places keep theirs. [11, 4], at 1 -> ids [., 5, 2], start_bits [0b01.]."""
    stop = at + len(encoded)
    ids[at:stop] = encoded >> np.uint32(1)
    flags = np.unpackbits(start_bits.view(np.uint8), bitorder="little")
    flags[at:stop] = encoded & np.uint32(1)
    start_bits.view(np.uint8)[:] = np.packbits(flags, bitorder="little")
    return int(encoded.max(initial=0))


def cut_narrow_with_numpy(
    ids: Uint16,
    start_bits: Uint64,
    firsts: Int64,
    length: int,
    inputs: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    is_start: npt.NDArray[np.bool_],
) -> None:
    """As row_cut.cut_with_numpy, of what was narrowed; each row has a place in front of it, firsts are at least 1."""
    flags = np.unpackbits(start_bits.view(np.uint8), bitorder="little").view(np.bool_)
    for row, first in enumerate(firsts.tolist()):
        targets[row] = ids[first : first + length]
        inputs[row] = ids[first - 1 : first - 1 + length]
        is_start[row] = flags[first : first + length]
    inputs[is_start] = 0


class NarrowWindow:
    """Up to `capacity` full rows of `length` targets; see RowWindow, which holds the same for any ids.

    ids: uint16[capacity * (length + 1)]. start_bits: as above. firsts: int64[capacity]."""

    lengths = None  # rows are full

    def __init__(self, capacity: int, length: int) -> None:
        places = capacity * (length + 1)
        self.length = length
        self.ids: Uint16 = np.zeros(places, dtype=np.uint16)
        self.start_bits: Uint64 = np.zeros(-(-places // WORD_BITS), dtype=np.uint64)
        self.firsts: Int64 = np.zeros(capacity, dtype=np.int64)

    @staticmethod
    def holds(largest_id: int) -> bool:
        """Whether it can hold the ids up to this one, and does so faster."""
        return core is not None and largest_id <= LARGEST_ID

    def room(self, at: int, count: int) -> None:
        """None: nothing is decoded straight into a window whose ids are narrower."""

    def put(self, at: int, encoded: Uint32) -> int:
        """Put encoded tokens to the places from `at` on; the largest, which the caller compares."""
        largest: int = core.narrow(encoded, self.ids, self.start_bits, at)
        return largest

    def put_in_front(self, at: int, last_token: int) -> None:
        """Put the encoded token in front of a row: only its id is asked for."""
        self.ids[at] = last_token >> 1

    def is_start(self, at: int) -> bool:
        """Whether the token at a place is a start."""
        return bool(int(self.start_bits[at // WORD_BITS]) >> at % WORD_BITS & 1)

    def cut_into(
        self,
        rows: slice | Int64,
        inputs: npt.NDArray[Any],
        targets: npt.NDArray[Any],
        is_start: npt.NDArray[np.bool_],
    ) -> None:
        """Fill what is given with some rows; see row_cut.cut_with_numpy."""
        core.cut_narrow(self.ids, self.start_bits, self.firsts[rows], self.length, inputs, targets, is_start)

    def batch(self, first: int, stop: int, cut: RowCut) -> Batch:
        """The rows [first, stop) as a batch of its own memory."""
        inputs, targets, is_start = cut.take(stop - first)
        self.cut_into(slice(first, stop), inputs, targets, is_start)
        return cut.batch_of(inputs, targets, is_start)
