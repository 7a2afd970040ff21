"""Rows by number, in any order: for PackedSequences, and for samplers of other libraries.

The rows of one call are read together: each zarr chunk is decoded once, and a store gets few large requests.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from flat_tokens.arguments import invalid
from flat_tokens.errors import RangeError
from flat_tokens.format import Int64
from flat_tokens.masks import mask_of
from flat_tokens.rows.batch import Batch
from flat_tokens.rows.cut import RowCut, RowTable
from flat_tokens.rows.reader import RowReader, RowSource


class IndexedRows:
    """The rows of `source` as batches of int32: batch([3, 1]) is rows 3 and 1. Picklable and thread-safe.

    array: the split that the source belongs to.
    start_id: input before the first token of each sequence.
    noun: "row" or "pack", for errors.
    """

    def __init__(self, array: Any, source: RowSource, start_id: int = 0, noun: str = "row") -> None:
        self._name = array.name
        self._noun = noun
        self.start_id = start_id
        self.kind = source.kind
        self._reader = RowReader(array.encoded_tokens, source, mask_of(array))

    def __len__(self) -> int:
        return self._reader.source.row_count

    def batch(self, indexes: Iterable[Any]) -> Batch:
        """Some rows in the given order, each index in [-len, len). Raise RangeError, an IndexError, otherwise."""
        if not isinstance(indexes, Iterable):
            raise invalid("indexes", "must be a list of integers", indexes)
        rows: Int64 = np.array([self._position(index) for index in indexes], dtype=np.int64)
        cut = RowCut(self._reader.source.length, np.dtype(np.int32), self.start_id)
        if len(rows) == 1 and self._reader.is_plain:  # a table would cost more than the row
            encoded, first = self._reader.plain_row(int(rows[0]))
            return cut.batch(encoded, np.array([first]))
        slots = np.arange(len(rows))
        table = RowTable(max(1, len(rows)), cut.length, self._reader.source.is_padded, self._reader.is_masked)
        self._reader.read(self._reader.request(rows), table, slots, is_cached=True)
        return table.batch(slots, cut)

    def _position(self, index: Any) -> int:
        what, count = f"index of a {self._noun}", len(self)
        try:
            position = operator.index(index)
        except TypeError:
            raise invalid(what, "must be an integer", index, "Use batch() for several.") from None
        if not -count <= position < count:
            raise RangeError(f"{self._name}: {what} must be in [{-count}, {count}) (got {position})")
        return position % count
