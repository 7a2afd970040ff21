"""Rows of unequal length in two flat arrays, the result of encoding many texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from tokenmill.inputs.sizes import counted


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Row i is `tokens[offsets[i] : offsets[i + 1]]`.

    tokens: uint32[n]; offsets: uint64[rows + 1], not decreasing, the first 0 and the last n. A row may be empty.
    tokens [5, 6, 7], offsets [0, 2, 2, 3] -> rows [5, 6], [], [7].
    """

    tokens: NDArray[np.uint32]
    offsets: NDArray[np.uint64]

    def __repr__(self) -> str:
        return f"<Ragged {counted(len(self), 'row')}, {counted(len(self.tokens), 'token')}>"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.uint32]:
        """Return a view of the row. Negative numbers count from the end. Raise IndexError outside the rows."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"row: out of range for {len(self)} rows (got {row})")
        row %= len(self)
        return self.tokens[int(self.offsets[row]) : int(self.offsets[row + 1])]

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        for row in range(len(self)):
            yield self[row]

    @property
    def lengths(self) -> NDArray[np.uint64]:
        """Return the length of each row, uint64[rows]."""
        return np.diff(self.offsets)

    def tolist(self) -> list[list[int]]:
        """Return the rows as lists of Python integers."""
        return _core.id_rows(np.ascontiguousarray(self.tokens), np.ascontiguousarray(self.offsets))

    @staticmethod
    def concatenate(parts: list[Ragged]) -> Ragged:
        """Return the rows of all parts, copied."""
        lengths = [part.lengths for part in parts]
        offsets = np.zeros(sum(map(len, lengths)) + 1, np.uint64)
        if parts:
            np.cumsum(np.concatenate(lengths), out=offsets[1:])
        tokens = np.concatenate([part.tokens for part in parts]) if parts else np.zeros(0, np.uint32)
        return Ragged(tokens, offsets)

    @staticmethod
    def from_rows(rows: list[NDArray[np.uint32]]) -> Ragged:
        """Return the rows, copied end to end."""
        offsets = np.zeros(len(rows) + 1, np.uint64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        tokens = np.concatenate(rows) if rows else np.zeros(0, np.uint32)
        return Ragged(tokens.astype(np.uint32, copy=False), offsets)
