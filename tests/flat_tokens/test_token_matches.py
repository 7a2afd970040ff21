"""Frames made of matches that are searched by tokens: the search as specified, and any zstd decoder reads them."""

from __future__ import annotations

import numcodecs
import numpy as np
import numpy.typing as npt
import pytest
from in_threads import in_threads

from flat_tokens.built import core
from flat_tokens.storage import token_matches
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.token_matches import BLOCK_TOKENS, FARTHEST, encode, find_with_python, shortest_match
from flat_tokens.storage.zstd_frames import last_bytes

SIZES = [
    1,
    2,
    3,
    4,
    5,
    63,
    64,
    65,
    1000,
    BLOCK_TOKENS - 1,
    BLOCK_TOKENS,
    BLOCK_TOKENS + 1,
    3 * BLOCK_TOKENS + 77,
]
KINDS = ["words", "large ids", "repeated", "noise", "zeros"]


def tokens(size: int, kind: str) -> npt.NDArray[np.uint32]:
    generator = np.random.default_rng([size, KINDS.index(kind)])
    if kind == "zeros":
        return np.zeros(size, dtype=np.uint32)
    if kind == "noise":
        return generator.integers(0, 2**32, size, dtype=np.uint32)
    largest = 200_000 if kind == "large ids" else 50_000
    ids = (largest ** generator.random(size)).astype(np.uint32) * 2
    if kind == "repeated":  # phrases of all lengths, copied from anywhere in front of them
        at = 10
        while at < size:
            length = int(generator.geometric(0.1))
            start = int(generator.integers(0, at))
            part = ids[start : start + min(length, size - at)].copy()
            ids[at : at + len(part)] = part
            at += length + int(generator.integers(0, 4))
    return ids


def restored(values: npt.NDArray[np.uint32], matches: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The tokens that the matches stand for, their literals taken from `values`."""
    out = np.zeros_like(values)
    at = 0
    for offset, literals, length, repeat in (matches.astype(np.int64) // 4).tolist():
        assert repeat == 0
        out[at : at + literals] = values[at : at + literals]
        at += literals
        for place in range(at, at + length):
            out[place] = out[place - offset]
        at += length
    assert at == len(values)
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shortest", [2, 3])
def test_the_search_as_specified(size: int, kind: str, shortest: int) -> None:
    values = tokens(size, kind)
    for block_tokens, farthest in ((BLOCK_TOKENS, FARTHEST), (100, 1000)):
        if size > 1000 and block_tokens == 100 and kind == "noise":
            continue
        expected = find_with_python(values, shortest, block_tokens, farthest)
        assert len(expected) <= size // shortest + -(-size // block_tokens)
        assert np.array_equal(restored(values, expected), values)
        assert expected[:, 0].max() <= 4 * farthest
        matched = expected[expected[:, 0] > 0]
        assert (matched[:, 2] >= 4 * shortest).all()
        if core is not None:
            found = np.full((size // 2 + size // block_tokens + 2, 4), 7, dtype=np.uint32)
            table = np.full(2**token_matches.TABLE_BITS, 7, dtype=np.uint32)
            count = core.find_matches(values, shortest, block_tokens, farthest, found, table)
            assert np.array_equal(found[:count], expected)
            assert (found[count:] == 7).all()


@pytest.mark.parametrize("has_checksum", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_any_decoder_reads_it(size: int, kind: str, has_checksum: bool) -> None:
    values = tokens(size, kind)
    payload = encode(values, has_checksum)
    if payload is None:
        pytest.skip("numcodecs does not export the functions of libzstd here")
    assert np.array_equal(np.frombuffer(numcodecs.Zstd().decode(payload), dtype=np.uint32), values)
    assert bool(payload[4] & 4) == has_checksum
    assert encode(values, has_checksum) == payload
    for part in (payload, memoryview(payload)):
        assert last_bytes(part, 4) == (None if size == 1 else values[-1:].tobytes())
    assert last_bytes(payload, 5) is None
    assert last_bytes(payload[:-1], 4) is None
    assert last_bytes(payload + b"x", 4) is None
    assert len(payload) <= len(numcodecs.Zstd(1, checksum=has_checksum).encode(values)) * 1.06 + 16


def test_the_same_without_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    values = tokens(40_000, "repeated")
    payload = encode(values, True)
    monkeypatch.setattr(token_matches, "core", None)
    assert encode(values, True) == payload


def test_an_array_beyond_the_window() -> None:
    values = np.concatenate([tokens(FARTHEST + 50, "words")] * 2)
    payload = encode(values, True)
    if payload is None:
        pytest.skip("numcodecs does not export the functions of libzstd here")
    assert np.array_equal(np.frombuffer(numcodecs.Zstd().decode(payload), dtype=np.uint32), values)


def test_very_large_zarr_chunks_are_left_to_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    values = tokens(1000, "repeated")
    monkeypatch.setattr(token_matches, "MOST_TOKENS", 999)
    assert encode(values, True) is None
    assert encode(values[1:], True) is not None


def test_shortest_matches() -> None:
    assert shortest_match(np.array([2**17 - 1, 0], dtype=np.uint32)) == 3
    assert shortest_match(np.array([2**17, 0], dtype=np.uint32)) == 2
    assert shortest_match(np.empty(0, dtype=np.uint32)) == 3
    late = np.zeros(BLOCK_TOKENS + 1, dtype=np.uint32)
    late[-1] = 2**17  # behind the first block
    assert shortest_match(late) == 3


def test_an_example() -> None:
    values = np.array([5, 6, 7, 5, 6, 7, 8], dtype=np.uint32)
    assert find_with_python(values, 3, 100, 100).tolist() == [[12, 12, 12, 0], [0, 4, 0, 0]]


def test_threads_do_not_share_a_writer() -> None:
    kinds = [tokens(30_000, kind) for kind in ("words", "repeated", "large ids", "zeros")]
    expected = [encode(values, True) for values in kinds]

    def work(number: int) -> None:
        for _ in range(20):
            assert encode(kinds[number], True) == expected[number]

    in_threads(4, work)


@pytest.mark.parametrize("level", [1, 3])
def test_level_one_of_tokens_alone(level: int) -> None:
    """Other levels, and other arrays, are numcodecs' own."""
    chain = CodecChain.from_configs([], {"id": "zstd", "level": level, "checksum": True})
    values = tokens(1000, "repeated")
    assert (chain.encode(values) == encode(values, True)) == (level == 1)
    starts = values.astype(np.uint64)
    assert chain.encode(starts) == numcodecs.Zstd(level, checksum=True).encode(starts)


@pytest.mark.skipif(core is None, reason="the loop is not built")
@pytest.mark.parametrize(
    ("shortest", "block_tokens", "farthest", "matches", "table", "message"),
    [
        (4, 8, 8, 20, 2**14, "shortest must be 2 or 3, got 4"),
        (2, 0, 8, 20, 2**14, "must be at least 1"),
        (2, 8, 0, 20, 2**14, "must be at least 1"),
        (2, 8, 8, 12, 2**14, "matches has 192 bytes, 13 matches may need 208"),
        (2, 8, 8, 20, 2**13, "table has 32768 bytes, it must have 65536"),
    ],
)
def test_the_loop_checks(
    shortest: int, block_tokens: int, farthest: int, matches: int, table: int, message: str
) -> None:
    values = np.zeros(20, dtype=np.uint32)
    found, slots = np.empty((matches, 4), dtype=np.uint32), np.empty(table, dtype=np.uint32)
    with pytest.raises(ValueError, match=message):
        core.find_matches(values, shortest, block_tokens, farthest, found, slots)
