"""The permutation: bijective at every size, deterministic, and without visible order."""

from __future__ import annotations

import numpy as np
import pytest

from flat_tokens.order.permutation import derive_key, mix, permute

SIZES = [*range(1, 70), *(2**k + d for k in (7, 10, 13) for d in (-1, 0, 1))]


def network(value: int, size: int, key: int) -> int:
    """Apply the rule of the module's docstring in plain integers."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    bits = max(6, (size - 1).bit_length())
    low = bits // 2
    while True:
        left, right = value >> low, value & (1 << low) - 1
        keys = [mix(key + turn * golden & mask) for turn in range(1, 9)]
        for even, odd in zip(keys[::2], keys[1::2], strict=True):
            left ^= mix(right + even & mask) >> 64 - (bits - low)
            right ^= mix(left + odd & mask) >> 64 - low
        value = left << low | right
        if value < size:
            return value


@pytest.mark.parametrize("size", SIZES)
def test_one_to_one_and_as_documented(size: int) -> None:
    for key in (0, 1, 2**64 - 1):
        permuted = permute(np.arange(size), size, key)
        assert sorted(permuted.tolist()) == list(range(size))
        some = np.random.default_rng(size).integers(0, size, 5).tolist()
        assert permute(some, size, key).tolist() == [network(value, size, key) for value in some]


def test_golden_values_never_change() -> None:
    assert (mix(0), mix(1)) == (0, 0x5692161D100B05E5)
    assert derive_key(0) == 16294208416658607535
    assert derive_key(7, 1, 2) == 18042442064269395592
    assert permute(range(5), 5, 0).tolist() == [4, 3, 2, 0, 1]
    assert permute(range(8), 127, 1).tolist() == [97, 7, 13, 110, 93, 41, 65, 84]
    assert permute(range(8), 128, 1).tolist() == [97, 7, 13, 110, 93, 41, 65, 84]
    assert permute(range(8), 129, 1).tolist() == [27, 33, 71, 95, 37, 126, 46, 84]
    assert permute(range(4), 10**15, derive_key(3)).tolist() == [
        626216136297006,
        975511942091006,
        183561632904405,
        76941504929921,
    ]


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 1000, 2**31, 2**40 + 1, 2**62 - 1, 2**62])
def test_keys_broadcast_to_the_positions(size: int) -> None:
    generator = np.random.default_rng(size)
    positions = generator.integers(0, size, (3, 2, 5))
    keys = generator.integers(0, 2**64, (3, 2, 1), dtype=np.uint64)
    for key in (
        7,
        keys[0, 0, 0],
        keys,
        keys[:1],
        keys[0],
        keys[:, :1, :],
        keys * np.arange(5, dtype=np.uint64),
    ):
        pairs = zip(positions.flat, np.broadcast_to(key, positions.shape).flat, strict=True)
        expected = [network(int(position), size, int(own)) for position, own in pairs]
        assert permute(positions, size, key).flatten().tolist() == expected
