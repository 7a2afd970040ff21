"""Frames of given matches: the native search equals its specification, and every zstd decoder reads the frames."""

from __future__ import annotations

import numcodecs
import numpy as np
import numpy.typing as npt
import pytest
from in_threads import in_threads

from flat_tokens import _core
from flat_tokens.storage.token_matches import BLOCK_TOKENS, MAX_DISTANCE, TABLE_BITS, compress

GROUP_PLACES = 64
_ROTATIONS = {2: (0, 15), 3: (0, 12, 23)}  # rotation of each token of a key, by key size
_FACTOR = 0x9E3779B1
_MASK = 2**32 - 1
Uint32 = npt.NDArray[np.uint32]

SIZES = [*(1, 2, 3, 4, 5, 63, 64, 65, 1000), *(BLOCK_TOKENS + d for d in (-1, 0, 1)), 3 * BLOCK_TOKENS + 77]
KINDS = ["words", "large ids", "repeated", "noise", "zeros"]


def find_with_python(values: Uint32, shortest: int, block_tokens: int, farthest: int) -> Uint32:
    """The specification of find_matches: uint32[matches, 4] of the offset, the bytes of literals before the match, the
    bytes of the match, and 0. The last one of each block has only literals.

    A table maps the hash of some tokens to the last position with this hash. Positions enter it in order, 64 at a time.
    Those that find equal tokens there become matches, greedily from the left, and are extended. Of the positions that a
    match covers past the 64, only the last one enters.

    [5, 6, 7, 5, 6, 7, 8] in one block -> [[12, 12, 12, 0], [0, 4, 0, 0]]."""
    tokens = values.tolist()
    count = len(tokens)

    def slot(at: int) -> int:
        key = 0
        for token, bits in zip(tokens[at : at + shortest], _ROTATIONS[shortest], strict=True):
            key ^= (token << bits | token >> (32 - bits)) & _MASK
        return (key * _FACTOR & _MASK) >> (32 - TABLE_BITS)

    places: dict[int, int] = {}
    found = []
    for low in range(0, count, block_tokens):
        high = min(count, low + block_tokens)
        done = first = low
        while first < high:
            stop_of_group = min(high, first + GROUP_PLACES)
            earlier = {}
            for at in range(first, min(stop_of_group, count - shortest + 1)):
                index = slot(at)
                earlier[at] = places.get(index)
                places[index] = at
            for at, place in earlier.items():
                if (
                    place is None
                    or at < done
                    or at + shortest > high
                    or at - place > farthest
                    or tokens[place : place + shortest] != tokens[at : at + shortest]
                ):
                    continue
                offset, start, stop = at - place, at, at + shortest
                while stop < high and tokens[stop] == tokens[stop - offset]:
                    stop += 1
                while start > max(done, offset) and tokens[start - 1] == tokens[start - 1 - offset]:
                    start -= 1
                found.append((4 * offset, 4 * (start - done), 4 * (stop - start), 0))
                done = stop
            first = max(stop_of_group, done - 1)
        found.append((0, 4 * (high - done), 0, 0))
    return np.array(found, dtype=np.uint32).reshape(-1, 4)


def tokens(size: int, kind: str) -> npt.NDArray[np.uint32]:
    generator = np.random.default_rng([size, KINDS.index(kind)])
    if kind == "zeros":
        return np.zeros(size, dtype=np.uint32)
    if kind == "noise":
        return generator.integers(0, 2**32, size, dtype=np.uint32)
    largest = 200_000 if kind == "large ids" else 50_000
    ids = (largest ** generator.random(size)).astype(np.uint32) * 2
    if kind == "repeated":  # phrases of all lengths, copied from any earlier offset
        at = 10
        while at < size:
            length = int(generator.geometric(0.1))
            start = int(generator.integers(0, at))
            part = ids[start : start + min(length, size - at)].copy()
            ids[at : at + len(part)] = part
            at += length + int(generator.integers(0, 4))
    return ids


def restored(values: npt.NDArray[np.uint32], matches: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Expand the matches to tokens, with literals taken from `values`."""
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shortest", [2, 3])
def test_the_search_as_specified(size: int, kind: str, shortest: int) -> None:
    values = tokens(size, kind)
    for block_tokens, farthest in ((BLOCK_TOKENS, MAX_DISTANCE), (100, 1000)):
        if size > 1000 and block_tokens == 100 and kind == "noise":
            continue
        expected = find_with_python(values, shortest, block_tokens, farthest)
        assert len(expected) <= size // shortest + -(-size // block_tokens)
        assert np.array_equal(restored(values, expected), values)
        assert expected[:, 0].max() <= 4 * farthest
        matched = expected[expected[:, 0] > 0]
        assert (matched[:, 2] >= 4 * shortest).all()
        found = np.full((size // 2 + size // block_tokens + 2, 4), 7, dtype=np.uint32)
        table = np.full(2**TABLE_BITS, 7, dtype=np.uint32)
        count = _core.find_matches(values, shortest, block_tokens, farthest, found, table)
        assert np.array_equal(found[:count], expected)
        assert (found[count:] == 7).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_any_decoder_reads_it(size: int, kind: str) -> None:
    values = tokens(size, kind)
    payload = compress(values)
    if payload is None:
        pytest.skip("numcodecs does not export the functions of libzstd here")
    assert np.array_equal(np.frombuffer(numcodecs.Zstd().decode(payload), dtype=np.uint32), values)
    assert payload[4] & 4  # RFC 8878: the content checksum flag
    assert compress(values) == payload
    assert len(payload) <= len(numcodecs.Zstd(1, checksum=True).encode(values)) * 1.06 + 16


def test_an_array_beyond_the_window() -> None:
    values = np.concatenate([tokens(MAX_DISTANCE + 50, "words")] * 2)
    payload = compress(values)
    if payload is None:
        pytest.skip("numcodecs does not export the functions of libzstd here")
    assert np.array_equal(np.frombuffer(numcodecs.Zstd().decode(payload), dtype=np.uint32), values)


def test_threads_do_not_share_a_writer() -> None:
    kinds = [tokens(30_000, kind) for kind in ("words", "repeated", "large ids", "zeros")]
    expected = [compress(values) for values in kinds]

    def work(number: int) -> None:
        for _ in range(20):
            assert compress(kinds[number]) == expected[number]

    in_threads(4, work)
