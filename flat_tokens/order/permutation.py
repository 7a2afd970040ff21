"""Permutations of [0, size) as functions, without a table.

Batches follow from (seed, step) alone, on every machine and in every later version, so the algorithm is fixed here.
Golden values in tests/flat_tokens/test_permutation.py pin it. All arithmetic is modulo 2^64.

mix(x) is the finalizer of SplitMix64: x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27;
x *= 0x94D049BB133111EB; x ^= x >> 31.

derive_key(seed, a, b, ...) starts from mix(seed + G) with G = 0x9E3779B97F4A7C15, and for each part p maps key to
mix(mix(key) ^ mix(p + G)). Neighbouring seeds and epochs are therefore unrelated.

permute(x, size, key) is an alternating Feistel network on bits = max(6, bit length of size - 1) bits. x is cut into
left = x >> (bits // 2) and right, the bits // 2 low bits. Four times: left ^= the top bits of mix(right + k), then
right ^= the top bits of mix(left + k), as many as the half is wide, each time with the next of the eight keys
k_i = mix(key + i * G), i from 1 to 8. Results of size or more pass through it again (cycle walking) until they are
below size. Above 64 the domain is less than twice as large, so this is half a pass more on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.built import native

LARGEST_SEED = 2**64 - 1
_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

Uint64 = npt.NDArray[np.uint64]


def mix(value: int) -> int:
    """A well mixed 64-bit number, one to one. mix(0) is 0, mix(1) is 0x5692161D100B05E5."""
    value = (value ^ value >> 30) * _FIRST & _MASK
    value = (value ^ value >> 27) * _SECOND & _MASK
    return value ^ value >> 31


def derive_key(seed: int, *parts: int) -> int:
    """A 64-bit key, from a seed in [0, 2^64) and numbers that identify its purpose."""
    key = mix(seed + _GOLDEN & _MASK)
    for part in parts:
        key = mix(mix(key) ^ mix(part + _GOLDEN & _MASK))
    return key


def derive_keys(key: int, *parts: npt.NDArray[np.int64]) -> Uint64:
    """derive_key continued from its result `key`, with arrays of parts of one shape; uint64 of that shape."""
    keys = np.full(parts[0].shape, key, dtype=np.uint64)
    for part in parts:
        keys = _mix_array(_mix_array(keys) ^ _mix_array(part.astype(np.uint64) + np.uint64(_GOLDEN)))
    return keys


def permute(positions: npt.ArrayLike, size: int, key: int | Uint64) -> npt.NDArray[np.int64]:
    """The images of some positions under a permutation of [0, size): int64 of the shape of `positions`.

    positions: integers in [0, size), with size in [1, 2^62].
    key: one for all, or uint64 that broadcasts to their shape.

    permute(range(5), 5, 0) is [4, 3, 2, 0, 1]. Cost: 20 ns per position. Raise ValueError for a position outside.
    """
    values = np.array(positions, dtype=np.uint64, order="C", ndmin=1)
    keys = np.array(key, dtype=np.uint64, ndmin=1)
    if keys.size > 1:
        keys = np.ascontiguousarray(np.broadcast_to(keys, values.shape))
    native.permute(values, size, keys)
    return values.view(np.int64).reshape(np.shape(positions))


def _mix_array(values: Any) -> Uint64:
    """mix of each value. values: a new uint64 array, which is overwritten."""
    shifted = values >> np.uint64(30)
    values ^= shifted
    values *= np.uint64(_FIRST)
    np.right_shift(values, np.uint64(27), out=shifted)
    values ^= shifted
    values *= np.uint64(_SECOND)
    np.right_shift(values, np.uint64(31), out=shifted)
    values ^= shifted
    result: Uint64 = values
    return result
