"""Check that the pretokens of a block ascend as byte strings."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.pretoken_counts.counts_facts import Arrays

_COMPARED_KEYS: Final = 4  # of 8 bytes each; the few pairs with equal keys are then compared one by one


def _eights(pretoken_bytes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the 8 bytes at each offset, including the end, as big-endian integers, padded with zeros."""
    padded = np.concatenate([pretoken_bytes, np.zeros(8, np.uint8)])
    eights: NDArray[np.uint64] = np.ndarray((len(padded) - 7,), ">u8", padded, strides=(1,))
    return eights


def _keys_at(
    eights: NDArray[np.uint64], starts: NDArray[np.uint64], ends: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return the bytes from each start to its end, at most 8, as integers of 8 bytes padded with zeros."""
    missing = np.uint64(8) * (np.uint64(8) - np.minimum(ends - starts, np.uint64(8)))
    keys: NDArray[np.uint64] = eights[starts.astype(np.int64)].astype(np.uint64) >> missing << missing
    return keys


def ascend(arrays: Arrays) -> bool:
    """Return whether each pretoken of a block is less than the next. Compares 8 bytes of undecided pairs at a time."""
    pretoken_bytes, ends, _ = arrays
    if len(ends) == 1:  # it may be long, so it is not copied
        return True
    starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    eights = _eights(pretoken_bytes)
    pairs = np.arange(len(ends) - 1)
    for depth in range(0, 8 * _COMPARED_KEYS, 8):
        here = [np.minimum(starts[pairs + side] + np.uint64(depth), ends[pairs + side]) for side in (0, 1)]
        left, right = (_keys_at(eights, here[side], ends[pairs + side]) for side in (0, 1))
        if (left > right).any():
            return False
        pairs = pairs[left == right]  # if a pretoken ends here, its pair is compared below
        if not len(pairs):
            return True
    return all(pretoken_at(arrays, place) < pretoken_at(arrays, place + 1) for place in pairs.tolist())


def pretoken_at(arrays: Arrays, place: int) -> bytes:
    """Return pretoken `place` of a block."""
    pretoken_bytes, ends, _ = arrays
    return pretoken_bytes[int(ends[place - 1]) if place else 0 : int(ends[place])].tobytes()
