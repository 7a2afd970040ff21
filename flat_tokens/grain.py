"""A random-access source for grain. Grain itself is not imported: it asks for __len__, __getitem__ and a
repr that stays the same, and compares the repr when it restores a checkpoint.

    source = RowSource(dataset.train, seq_len=1024)
    grain.MapDataset.source(source).shuffle(seed=0).repeat().batch(64)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import integer, split
from flat_tokens.batch import FIELDS, Batch
from flat_tokens.format import decode_start_flags, inputs_and_targets
from flat_tokens.reader import FlatTokensArray


class RowSource:
    """Row i of the packed stream as a dict of the five arrays of a Batch, [seq_len] each, ids as int32.

    Picklable, safe to use from several threads; IndexError outside. The repr tells split, counts and length,
    but no path: a dataset may be moved between a checkpoint and its return."""

    def __init__(self, array: FlatTokensArray, seq_len: int) -> None:
        split("array", array, "encoded_tokens", "row_count")
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
        batch = Batch(inputs.astype(np.int32), targets.astype(np.int32), decode_start_flags(row))
        return {name: getattr(batch, name)[0] for name in FIELDS}

    def __repr__(self) -> str:
        array = self.array
        return (
            f"flat_tokens.RowSource({array.name}, tokens={array.token_count}, sequences={array.seq_count}, "
            f"max_token_id={array.max_token_id}, seq_len={self.seq_len})"
        )
