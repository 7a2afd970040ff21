"""Rows by number with the fields of an adapter: the shared part of torch.RowDataset and grain.RowSource."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from flat_tokens.arguments import flag, integer, split
from flat_tokens.fields import DEFAULT, OF_A_ROW, Fields
from flat_tokens.format import LARGEST_TOKEN_ID
from flat_tokens.packs.packed_sequences import PackedSequences
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.indexed_rows import IndexedRows
from flat_tokens.rows.reader import PackedRows, RowSource


class RowItems:
    """Rows of the packed stream of a split, or packs, as dictionaries of arrays [seq_len].

    array: a split such as dataset.train, or PackedSequences of one.
    seq_len: tokens per row; for packs, their max_seq_len.
    fields: names of the arrays, of those with one row per item (default: input_ids and labels).
    ignore_first_labels: True (default) sets the labels of the first tokens of sequences to -100; False keeps them.
    drop_last: True (default) omits the tokens that fill no row. False adds them as a padded row.
    start_id: input before the first token of each sequence, in [0, 2^31) (default: 0).

    len() is the number of rows. An index outside raises IndexError. Picklable and thread-safe.
    """

    def __init__(
        self,
        array: FlatTokensArray | PackedSequences,
        seq_len: int,
        *,
        fields: Sequence[str] = DEFAULT,
        ignore_first_labels: bool = True,
        drop_last: bool = True,
        start_id: int = 0,
    ) -> None:
        self.array = array
        self.seq_len = integer("seq_len", seq_len, 1)
        with_tail = not flag("drop_last", drop_last)
        self._fields = Fields(fields, ignore_first_labels, OF_A_ROW)
        start_id = integer("start_id", start_id, 0, LARGEST_TOKEN_ID)
        source: RowSource
        if isinstance(array, PackedSequences):
            array.check_seq_len(self.seq_len)
            source, noun = array.rows, "pack"
            array = array.array
        else:
            split("array", array, "encoded_tokens", "row_count")
            source, noun = PackedRows(array, self.seq_len, with_tail), "row"
        self._rows = IndexedRows(array, source, start_id, noun)

    def __len__(self) -> int:
        return len(self._rows)

    def _items(self, indexes: Iterable[Any], dtype: type[np.signedinteger[Any]]) -> list[dict[str, Any]]:
        """Several rows, read together."""
        batch = self._rows.batch(indexes)
        arrays = self._fields.make(batch, dtype)
        return [{name: values[row] for name, values in arrays.items()} for row in range(len(batch))]
