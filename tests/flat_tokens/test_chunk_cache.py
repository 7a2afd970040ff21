"""The cache of decoded zarr chunks gives what was put, holds no more than it may, and uses its memory again."""

from __future__ import annotations

import random

import numpy as np
import pytest

from flat_tokens.storage.chunk_cache import ChunkCache


def new(capacity: int) -> ChunkCache:
    return ChunkCache(capacity, 4, np.dtype(np.uint32))


def read(cache: ChunkCache, index: int) -> bool:
    """As a reader does; whether it was there."""
    found = cache.find(index)
    if found is not None:
        assert found[0].tolist() == [index] * 4
        assert found[1] == 4
        return True
    buffer = cache.buffer()
    buffer[:] = index
    cache.put(index, buffer, 4)
    return False


@pytest.mark.parametrize("capacity", [1, 2, 3, 8])
@pytest.mark.parametrize("chunks", [1, 2, 7, 8, 9, 40])
def test_what_is_found_was_put(capacity: int, chunks: int) -> None:
    cache = new(capacity)
    rng = random.Random(capacity * chunks)
    buffers = set()
    for _ in range(2000):
        read(cache, rng.randrange(chunks))
        held = [values for values, _ in cache._kept.values()] + cache._spare
        held += [] if cache._newcomer is None else [cache._newcomer[1]]
        assert len({id(values) for values in held}) == len(held) <= max(2, capacity) + 1
        buffers |= {id(values) for values in held}
    assert len(buffers) <= max(2, capacity) + 1


def test_what_fits_stays() -> None:
    cache = new(5)
    assert [read(cache, index) for index in [0, 1, 2, 3, 4] * 3] == [False] * 5 + [True] * 10


def test_a_newcomer_that_comes_again_soon_gets_a_place() -> None:
    cache = new(5)
    for index in range(4):
        read(cache, index)
    assert [read(cache, index) for index in (10, 11, 10, 11, 10, 11)] == [False] * 3 + [True] * 3
    assert not read(cache, 0)  # went for 10


def test_newcomers_share_two_buffers_and_leave_the_others_alone() -> None:
    cache = new(5)
    for index in range(4):
        read(cache, index)
    places = set()
    for index in range(10, 40):
        read(cache, index)
        assert cache._newcomer is not None
        places.add(id(cache._newcomer[1]))
    assert len(places) == 2
    assert all(read(cache, index) for index in range(4))


def test_more_of_a_zarr_chunk_replaces_its_front() -> None:
    cache = new(2)
    for index in (0, 1):
        cache.put(index, np.full(4, index, np.uint32), 2)
        assert cache.find(index) is not None
        cache.put(index, np.full(4, index, np.uint32), 4)
        found = cache.find(index)
        assert found is not None
        assert found[1] == 4
