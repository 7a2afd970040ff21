"""Which split a document belongs to, and the ids of a text chunk put apart accordingly.

By hash: a document is validation if XXH64 of its bytes, seeded, is below fraction * 2^64. The rule looks at the
document alone, so it does not change when other documents come or go, exact copies stay together, and a greater
fraction only adds to the validation split. By file: the documents of --validation files are validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bpe import _core

if TYPE_CHECKING:
    from convert.shards.shard_writer import ShardWriter


def hash_threshold(fraction: float) -> int:
    """A hash below it means validation: 0 to 2^64. Exact, since a double times a power of two is: 0.5 -> 2^63."""
    return int(fraction * 2.0**64)


def is_validation(hashes: NDArray[np.uint64], threshold: int) -> NDArray[np.bool_]:
    """bool[documents], True for validation; threshold from `hash_threshold`."""
    if threshold == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    return hashes <= np.uint64(threshold - 1)  # 2^64 itself would not fit


def deal_out(
    tokens: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    validation: NDArray[np.bool_],
    shard: ShardWriter,
) -> None:
    """Add each document to the split it belongs to, in order. What `tokens` holds is lost.

    tokens, offsets: as `bpe.Ragged`; validation: bool[documents].
    """
    lengths = np.diff(offsets)
    own = lengths[validation]
    held_out = np.empty(int(own.sum()), dtype=np.uint32)
    kept = _core.take_rows_out(tokens, offsets, validation, held_out)
    shard.add(0, tokens[:kept], lengths[~validation])
    shard.add(1, held_out, own)
