"""The core's content hash equals the xxhash package at every size around its blocks of 4, 8 and 32 bytes."""

from __future__ import annotations

import random

import pytest
import xxhash

from bpe import _core

SEEDS = [0, 1, 2**31, 2**32 + 5, 2**63, 2**64 - 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_xxhash_at_all_small_sizes(seed: int) -> None:
    data = random.Random(7).randbytes(300)
    for size in range(301):
        got = _core.hash_documents(data[:size].replace(b"|", b"-"), b"|", seed)
        assert got.tolist() == [xxhash.xxh64_intdigest(data[:size].replace(b"|", b"-"), seed)], size


def test_equals_xxhash_on_a_long_document() -> None:
    data = random.Random(8).randbytes(1 << 20).replace(b"|", b"-")
    assert _core.hash_documents(data, b"|", 3).tolist() == [xxhash.xxh64_intdigest(data, 3)]
    assert _core.xxh64(data, 3) == xxhash.xxh64_intdigest(data, 3)


def test_a_hash_for_each_document() -> None:
    got = _core.hash_documents(b"ab||c|", b"|", 9)
    assert got.dtype == "uint64"
    assert got.tolist() == [xxhash.xxh64_intdigest(part, 9) for part in [b"ab", b"", b"c", b""]]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises((TypeError, ValueError)):
        _core.hash_documents(b"a", b"|", seed)
