"""Whether the pretokens of a block ascend as byte strings."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.pretoken_counts.counts_facts import Arrays

_COMPARED_KEYS: Final = 4  # of 8 bytes; the few pairs that are equal so far are compared one by one


def _eights(pretoken_bytes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The 8 bytes at each place, and behind the last one, as big-endian numbers; zeros follow the end."""
    padded = np.concatenate([pretoken_bytes, np.zeros(8, np.uint8)])
    eights: NDArray[np.uint64] = np.ndarray((len(padded) - 7,), ">u8", padded, strides=(1,))
    return eights


def _keys_at(
    eights: NDArray[np.uint64], starts: NDArray[np.uint64], ends: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """The bytes from each start on, 8 at most, up to each end, as numbers of 8 bytes."""
    missing = np.uint64(8) * (np.uint64(8) - np.minimum(ends - starts, np.uint64(8)))
    keys: NDArray[np.uint64] = eights[starts.astype(np.int64)].astype(np.uint64) >> missing << missing
    return keys


def ascend(arrays: Arrays) -> bool:
    """Whether each pretoken of a block is less than the next: by 8 bytes of all pairs not yet decided at a time."""
    pretoken_bytes, ends, _ = arrays
    if len(ends) == 1:  # which may be long: nothing is copied
        return True
    starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    eights = _eights(pretoken_bytes)
    pairs = np.arange(len(ends) - 1)
    for depth in range(0, 8 * _COMPARED_KEYS, 8):
        here = [np.minimum(starts[pairs + side] + np.uint64(depth), ends[pairs + side]) for side in (0, 1)]
        left, right = (_keys_at(eights, here[side], ends[pairs + side]) for side in (0, 1))
        if (left > right).any():
            return False
        pairs = pairs[left == right]  # of those that end here, the shorter one is less: below
        if not len(pairs):
            return True
    return all(pretoken_at(arrays, place) < pretoken_at(arrays, place + 1) for place in pairs.tolist())


def pretoken_at(arrays: Arrays, place: int) -> bytes:
    """Pretoken `place` of a block."""
    pretoken_bytes, ends, _ = arrays
    return pretoken_bytes[int(ends[place - 1]) if place else 0 : int(ends[place])].tobytes()
