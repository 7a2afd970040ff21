"""Rows in memory, in the order of the batches: where shuffled reading puts them.

Encoded tokens as they were read, 4 bytes each, and where in them each row begins. What reads says where it puts
them: packed rows that are neighbours in the stream stay neighbours here, so that zarr chunks are decoded straight
into their place; other rows have a place of length + 1 each. The memory is allocated once and filled again and again,
since memory that a process touches first is slow; what a batch holds is copied out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.batch import Batch, Int32
from flat_tokens.rows.row_cut import Int64, RowCut, Uint32, cut_rows


class RowWindow:
    """Up to `capacity` rows of `length` targets.

    tokens: uint32[capacity * (length + 1)]. firsts: int64[capacity], where the first target of each row is; the token
    in front of it stands in front of it here (anything where the row begins with a start). lengths:
    int32[capacity], tokens in front of the padding, or None where rows are full."""

    def __init__(self, capacity: int, length: int, is_padded: bool) -> None:
        self.length = length
        self.tokens: Uint32 = np.zeros(capacity * (length + 1), dtype=np.uint32)
        self.firsts: Int64 = np.arange(capacity, dtype=np.int64) * (length + 1) + 1
        self.lengths: Int32 | None = np.zeros(capacity, dtype=np.int32) if is_padded else None

    def room(self, at: int, count: int) -> Uint32 | None:
        """The places [at, at + count) for somebody to decode into, uint32[count]; None where that cannot be."""
        return self.tokens[at : at + count]

    def put(self, at: int, encoded: Uint32) -> int:
        """Put encoded tokens to the places from `at` on; the largest, which the caller compares."""
        self.tokens[at : at + len(encoded)] = encoded
        return int(np.maximum.reduce(encoded, initial=0))

    def put_in_front(self, at: int, last_token: int) -> None:
        """Put the encoded token in front of a row."""
        self.tokens[at] = last_token

    def is_start(self, at: int) -> bool:
        """Whether the token at a place is a start."""
        return bool(self.tokens[at] & 1)

    def part(self, first: int, stop: int) -> RowWindow:
        """The places [first, stop) as a window of its own on the same memory, to be filled by another thread."""
        part = object.__new__(RowWindow)
        part.length = self.length
        part.tokens = self.tokens[first * (self.length + 1) : stop * (self.length + 1)]
        part.firsts = np.arange(stop - first, dtype=np.int64) * (self.length + 1) + 1
        part.lengths = None if self.lengths is None else self.lengths[first:stop]
        return part

    def join(self, parts: Sequence[RowWindow], places: Int64) -> None:
        """Make the rows of filled parts, one behind the other, the rows places[0], places[1] ... of this window."""
        offsets = np.cumsum([0, *(len(part.tokens) for part in parts[:-1])])
        found = [part.firsts + offset for part, offset in zip(parts, offsets, strict=True)]
        self.firsts[places] = np.concatenate(found)
        if self.lengths is not None:
            self.lengths[places] = self.lengths[: len(places)].copy()

    def rows(self) -> Uint32:
        """The memory as uint32[capacity, length + 1], for rows with a place of their own, where `firsts` puts them
        at the beginning."""
        return self.tokens.reshape(-1, self.length + 1)

    def cut_into(
        self,
        rows: slice | Int64,
        inputs: npt.NDArray[Any],
        targets: npt.NDArray[Any],
        is_start: npt.NDArray[np.bool_],
    ) -> None:
        """Fill what is given with some rows; see row_cut.cut_with_numpy."""
        cut_rows(self.tokens, self.firsts[rows], self.length, inputs, targets, is_start)

    def batch(self, first: int, stop: int, cut: RowCut) -> Batch:
        """The rows [first, stop) as a batch of its own memory."""
        lengths = None if self.lengths is None else self.lengths[first:stop].copy()
        return cut.batch(self.tokens, self.firsts[first:stop], lengths)
