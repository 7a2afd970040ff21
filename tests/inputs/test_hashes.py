"""The content hashes equal the xxhash package, at every size around the blocks of 4, 8 and 32 bytes."""

from __future__ import annotations

import random

import numpy as np
import pytest
import xxhash

from tokenmill.inputs import _core

SEEDS = [0, 1, 2**31, 2**32 + 5, 2**63, 2**64 - 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_hash_of_a_text_and_of_its_parts(seed: int) -> None:
    rng = random.Random(seed)
    data = rng.randbytes(300)
    for size in range(301):
        assert _core.xxh64(data[:size], seed) == xxhash.xxh64_intdigest(data[:size], seed), size
        cuts = sorted(rng.choices(range(size + 1), k=rng.randrange(6)))
        hash_ = _core.Xxh64(seed)
        for start, stop in zip([0, *cuts], [*cuts, size], strict=True):
            hash_.update(data[start:stop])
            assert hash_.digest() == xxhash.xxh64_intdigest(data[:stop], seed)
    long = rng.randbytes(1 << 20)
    assert _core.xxh64(long, seed) == xxhash.xxh64_intdigest(long, seed)


def test_a_hash_for_each_document() -> None:
    rows = _core.hash_ragged(b"ab||c|", np.array([0, 2, 3, 6], np.uint64), 9)
    assert rows.tolist() == [xxhash.xxh64_intdigest(part, 9) for part in [b"ab", b"|", b"|c|"]]
    documents = _core.hash_documents(b"ab||c|", b"|", 9)
    assert documents.tolist() == [xxhash.xxh64_intdigest(part, 9) for part in [b"ab", b"", b"c", b""]]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    for call in (_core.xxh64, lambda data, seed: _core.Xxh64(seed)):
        with pytest.raises((TypeError, ValueError)):
            call(b"", seed)
