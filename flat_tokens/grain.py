"""A random-access source for grain. Grain itself is not imported: it asks for __len__, __getitem__ and a
repr that stays the same, and compares the repr when it restores a checkpoint.

    source = RowSource(dataset.train, seq_len=1024)
    grain.MapDataset.source(source).shuffle(seed=0).repeat().batch(64)

inputs and targets are the shifted pair; fields=("input_ids", "labels") are unshifted, for a model that shifts
(flat_tokens/fields.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import integer, split
from flat_tokens.batch import Batch
from flat_tokens.fields import WITH_STARTS, Fields
from flat_tokens.format import decode_start_flags, inputs_and_targets
from flat_tokens.reader import FlatTokensArray


class RowSource:
    """Row i of the packed stream as a dict of arrays [seq_len], int32 but for is_seq_start, which is bool. fields:
    which arrays. ignore_first_labels: False keeps the labels of the first tokens of sequences.

    Picklable, safe to use from several threads; IndexError outside. The repr tells split, counts and length,
    but no path: a dataset may be moved between a checkpoint and its return."""

    def __init__(
        self,
        array: FlatTokensArray,
        seq_len: int,
        *,
        fields: Sequence[str] = WITH_STARTS,
        ignore_first_labels: bool = True,
    ) -> None:
        split("array", array, "encoded_tokens", "row_count")
        self._fields = Fields(fields, ignore_first_labels)
        self.array = array
        self.seq_len = integer("length of a row", seq_len, 1)
        self.row_count = array.row_count(self.seq_len)

    def __len__(self) -> int:
        return self.row_count

    def __getitem__(self, index: Any) -> dict[str, npt.NDArray[Any]]:
        first = self.array.row_start(index, self.seq_len)
        begin = max(first - 1, 0)
        encoded = self.array.encoded_tokens.peek(begin, first + self.seq_len)
        row = encoded[None, first - begin :]
        inputs, targets = inputs_and_targets(row, int(encoded[0]) if first else 0)
        batch = Batch(inputs, targets, decode_start_flags(row))
        return {name: made[0] for name, made in self._fields.make(batch, np.int32).items()}

    def __repr__(self) -> str:
        array = self.array
        return (
            f"flat_tokens.RowSource({array.name}, tokens={array.token_count}, sequences={array.seq_count}, "
            f"max_token_id={array.max_token_id}, seq_len={self.seq_len})"
        )
