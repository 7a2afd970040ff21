"""The core's content hash equals the xxhash package at every size around its blocks of 4, 8 and 32 bytes."""

from __future__ import annotations

import random

import pytest
import xxhash

from tokenmill.inputs import _core

SEEDS = [0, 1, 2**31, 2**32 + 5, 2**63, 2**64 - 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_xxhash_at_all_small_sizes(seed: int) -> None:
    data = random.Random(7).randbytes(300)
    for size in range(301):
        assert _core.xxh64(data[:size], seed) == xxhash.xxh64_intdigest(data[:size], seed), size


def test_equals_xxhash_on_a_long_text() -> None:
    data = random.Random(8).randbytes(1 << 20)
    assert _core.xxh64(data, 3) == xxhash.xxh64_intdigest(data, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_hash_of_parts_is_that_of_the_whole(seed: int) -> None:
    rng = random.Random(11)
    data = rng.randbytes(300)
    for size in [0, 1, 3, 4, 7, 8, 31, 32, 33, 63, 64, 65, 300]:
        for _ in range(20):
            cuts = sorted(rng.choices(range(size + 1), k=rng.randrange(6)))
            hash_ = _core.Xxh64(seed)
            for start, stop in zip([0, *cuts], [*cuts, size], strict=True):
                copy = hash_.copy()
                hash_.update(data[start:stop])
                assert copy.digest() == xxhash.xxh64_intdigest(data[:start], seed)
                assert hash_.digest() == xxhash.xxh64_intdigest(data[:stop], seed)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises((TypeError, ValueError)):
        _core.xxh64(b"", seed)
    with pytest.raises((TypeError, ValueError)):
        _core.Xxh64(seed)
