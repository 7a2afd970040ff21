"""The hashes of a buffer's documents are those of the xxhash package, document by document."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash

from tokenmill.inputs import _core


def test_a_hash_for_each_document() -> None:
    got = _core.hash_documents(b"ab||c|", b"|", 9)
    assert got.dtype == "uint64"
    rows = _core.hash_ragged(b"ab||c|", np.array([0, 2, 3, 6], np.uint64), 9)
    assert rows.tolist() == [xxhash.xxh64_intdigest(part, 9) for part in [b"ab", b"|", b"|c|"]]
    assert got.tolist() == [xxhash.xxh64_intdigest(part, 9) for part in [b"ab", b"", b"c", b""]]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises((TypeError, ValueError)):
        _core.hash_documents(b"a", b"|", seed)
