"""Which split a document belongs to, and the ids of a text chunk put apart accordingly.

By hash: a document is validation if XXH64 of its bytes, seeded, is below fraction * 2^64. The rule looks at the
document alone, so it does not change when other documents come or go, exact copies stay together, and a greater
fraction only adds to the validation split. By file: the documents of --validation files are validation.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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


# More runs than this are put apart by a mask of all the ids, at 2 ns an id, and not one by one, at 5 µs a run.
MANY_RUNS = 1000


def deal_out(
    tokens: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    validation: NDArray[np.bool_],
    shard: ShardWriter,
) -> None:
    """Add each document to the split it belongs to, in order.

    tokens, offsets: as `bpe.Ragged`; validation: bool[documents]. Documents go in runs of the same split: a small
    fraction costs next to nothing; of many runs, all at once.
    """
    lengths = np.diff(offsets)
    changes = np.flatnonzero(validation[1:] != validation[:-1]) + 1
    if len(changes) >= MANY_RUNS:
        mask = np.repeat(validation, lengths.astype(np.intp))
        shard.add(0, tokens[~mask], lengths[~validation])
        shard.add(1, tokens[mask], lengths[validation])
        return
    borders = [0, *changes.tolist(), len(validation)]
    for begin, end in pairwise(borders):
        if begin < end:
            own = tokens[int(offsets[begin]) : int(offsets[end])]
            shard.add(1 if validation[begin] else 0, own, lengths[begin:end])
