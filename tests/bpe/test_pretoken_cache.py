"""The cache of an encoder never changes IDs: while it grows, when it is full, and at its limit."""

from __future__ import annotations

import random

import numpy as np
import pytest
from pretoken_ends import automaton_of

from bpe import _core


def encoder_of(**options: int) -> _core.TokenizerCore:
    pieces = [b" wor", b"ds", b" a", b"ga", b"in", b"xx", b"xxxx", b" words", "曉".encode()]
    entries = dict(enumerate([*(bytes([value]) for value in range(256)), *pieces]))
    return _core.EntryFile.from_entries(entries, None).encoder({}, automaton_of("gpt2"), True, **options)


def check_same_again(*texts: bytes, **options: int) -> _core.TokenizerCore:
    """Encode each text three times, so that later passes hit the cache, and compare with an encoder without one."""
    encoder = encoder_of(**options)
    for text in texts:
        expected = encoder_of(cache_bytes=0).encode_documents(text, b"\0", 1)[0]
        for _ in range(3):
            assert np.array_equal(encoder.encode_documents(text, b"\0", 1)[0], expected)
    return encoder


@pytest.mark.parametrize("count", [340, 342, 700, 30_000])
def test_a_growing_cache(count: int) -> None:
    """Sizes around and beyond those at which the table doubles."""
    text = b" ".join(b"%x" % (i * 2654435761 % 2**32) for i in range(count))
    check_same_again(text)


@pytest.mark.parametrize("count", [1, 300, 342, 700])
def test_a_cache_grows_at_once_to_the_size_of_a_longer_text(count: int) -> None:
    words = [b"%x" % (i * 2654435761 % 2**32) for i in range(30_000)]
    check_same_again(b" ".join(words[:count]), b" ".join(words))


def test_a_cache_without_an_empty_slot() -> None:
    """So many new words that a table at its maximum size fills up to the last slot."""
    rng = random.Random(11)
    # So few IDs that none are in the arena, which would otherwise fill first.
    text = b" ".join(bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=5)) for _ in range(300_000))
    encoder = check_same_again(text, cache_bytes=2 << 20)
    assert encoder.cache_bytes_used() <= 2 << 20


def test_a_cache_stays_within_its_bound() -> None:
    text = (
        b" ".join(b"%d" % i for i in range(6000)) + b" x" + b"x" * 40 + " 曉光緣圃麗芳氣滿街流".encode() * 9
    )
    assert check_same_again(text, cache_bytes=20_000).cache_bytes_used() <= 20_000
