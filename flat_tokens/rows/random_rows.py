"""Rows by number, in any order: for samplers of others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from flat_tokens.arguments import flag, integer, split
from flat_tokens.format import LARGEST_TOKEN_ID
from flat_tokens.loading.batch import Batch
from flat_tokens.masks import mask_of, put_trained
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray, wrong_row
from flat_tokens.rows.row_cut import RowCut
from flat_tokens.rows.row_source import TokenRanges


class RandomRows:
    """Rows of the packed stream of a split, or packs: batch([3, 1]) is rows 3 and 1. drop_last: False for a last row of
    what fills none, padded. start_id: the input in front of a sequence. Picklable; safe to use from several threads."""

    def __init__(
        self,
        array: FlatTokensArray | PackedSequences,
        seq_len: int,
        *,
        drop_last: bool = True,
        start_id: int = 0,
    ) -> None:
        if not isinstance(array, PackedSequences):
            split("array", array, "encoded_tokens", "row_count")
        self.array = array
        self.seq_len = integer("seq_len", seq_len, 1)
        self._start_id = integer("start_id", start_id, 0, LARGEST_TOKEN_ID)
        is_padded = not flag("drop_last", drop_last)
        self.name: str = array.array.name if isinstance(array, PackedSequences) else array.name
        if isinstance(array, PackedSequences):
            array.check_seq_len(self.seq_len)
            self.row_count = len(array)
        else:
            rest = array.token_count % self.seq_len
            self.row_count = array.row_count(self.seq_len) + (is_padded and rest > 0)

    def __len__(self) -> int:
        return self.row_count

    def batch(self, indices: Iterable[Any]) -> Batch:
        """Some rows in the order of `indices`, each in [-len, len); RangeError, an IndexError, outside."""
        if isinstance(self.array, PackedSequences):
            batch: Batch = self.array.batch(indices)
            if self._start_id:
                np.copyto(batch.inputs, self._start_id, where=batch.is_seq_start)
            return batch
        array, length = self.array, self.seq_len
        firsts = [self._position(index) * length for index in indices]
        table = np.zeros((len(firsts), length + 1), dtype=np.uint32)
        lengths = np.full(len(firsts), length, dtype=np.int32)
        for at, first in enumerate(firsts):
            begin, stop = max(first - 1, 0), min(first + length, array.token_count)
            offset = begin - first + 1
            table[at, offset : offset + stop - begin] = array.encoded_tokens.peek(begin, stop)
            lengths[at] = stop - first
        mask, trained = mask_of(array), None
        if mask is not None:
            trained = np.empty((len(firsts), length), dtype=np.bool_)
            starts = np.array(firsts, dtype=np.int64)
            rows = np.arange(len(firsts))
            put_trained(mask, TokenRanges(rows, np.zeros_like(rows), starts, starts + lengths), trained)
        cut = RowCut(length, np.dtype(np.int32), self._start_id)
        is_full = not len(lengths) or int(lengths.min()) == length
        places = np.arange(len(table), dtype=np.int64) * (length + 1) + 1
        return cut.batch(table.reshape(-1), places, None if is_full else lengths, trained)

    def _position(self, index: Any) -> int:
        number = integer("index of a row", index)
        if not -self.row_count <= number < self.row_count:
            raise wrong_row(self.name, number, self.seq_len, self.row_count)
        return number % self.row_count
