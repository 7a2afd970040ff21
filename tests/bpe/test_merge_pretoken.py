"""Merges of one pretoken equal the reference for every rule, size and SIMD variant."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import numpy as np
import pytest

from bpe import _core
from bpe.reference import encode_pretoken, train

BYTES = [bytes([value]) for value in range(256)]
Vocabulary = tuple[dict[int, bytes], list[tuple[bytes, bytes]] | None]


def trained(seed: int, alphabet: bytes, new_entries: int) -> list[tuple[bytes, bytes]]:
    rng = random.Random(seed)
    pretokens = {bytes(rng.choices(alphabet, k=rng.randint(1, 14))): rng.randint(1, 50) for _ in range(150)}
    return train(pretokens, new_entries)


def entries_of(merges: list[tuple[bytes, bytes]]) -> dict[int, bytes]:
    return dict(enumerate(dict.fromkeys(BYTES + [left + right for left, right in merges])))


def listed(seed: int) -> Vocabulary:
    merges = trained(seed, b"abc", 60)
    return entries_of(merges), merges


def listed_shuffled(seed: int) -> Vocabulary:
    """Return ranks that do not ascend with the IDs, so lower ranks appear after higher ones."""
    merges = trained(seed, b"abc", 60)
    entries = entries_of(merges)
    rng = random.Random(seed)
    rng.shuffle(merges)
    return entries, merges


def listed_several_splits(seed: int) -> Vocabulary:
    """Return every split of every entry as a merge, so that several merges make one entry."""
    entries = entries_of(trained(seed, b"ab", 40))
    known = set(entries.values())
    merges = [
        (entry[:cut], entry[cut:])
        for entry in known
        for cut in range(1, len(entry))
        if entry[:cut] in known and entry[cut:] in known
    ]
    merges.sort()
    random.Random(seed).shuffle(merges)
    return entries, merges


def listed_behind_others(seed: int) -> Vocabulary:
    """Put the byte entries after 1,100 others: their symbols do not fit next to the ranks of two bytes."""
    merges = trained(seed, b"abc", 60)
    others = [b"zz" + str(i).encode() for i in range(1100)]
    return dict(enumerate([*others, *entries_of(merges).values()])), merges


def rank_file(seed: int) -> Vocabulary:
    return entries_of(trained(seed, b"abc", 60)), None


def rank_file_unreachable(seed: int) -> Vocabulary:
    """Return reachable and unreachable entries, IDs with gaps, and bytes in any order."""
    rng = random.Random(seed)
    entries = set(entries_of(trained(seed, b"abc", 40)).values())
    entries |= {bytes(rng.choices(b"abc", k=rng.randint(3, 40))) for _ in range(30)}
    ids = [*rng.sample(range(10_000), len(entries) - 1), 2**31 - 1]
    return dict(zip(ids, rng.sample(sorted(entries), len(entries)), strict=True)), None


def doubled_runs(seed: int) -> Vocabulary:
    """Return runs of up to 8 KiB, so that a cut depends on bytes further away than a window."""
    merges = [(b"a" * 2**k, b"a" * 2**k) for k in range(13)] + trained(seed, b"ab", 40)
    merges = list(dict.fromkeys(merges))
    return entries_of(merges), merges


RULES = [
    *(listed, listed_shuffled, listed_several_splits, listed_behind_others),
    *(rank_file, rank_file_unreachable, doubled_runs),
]


def encode_by_heap(
    text: bytes, id_of: dict[bytes, int], ranks: dict[tuple[bytes, bytes], int] | None
) -> list[int]:
    """Return the result of encode_pretoken in less time for long text: take the next merge from a heap."""
    parts = [bytes([value]) for value in text]  # keyed by the offset of their first byte
    following = list(range(1, len(text) + 1))
    before = list(range(-1, len(text)))
    heap: list[tuple[int, int, bytes, bytes]] = []

    def offer(place: int) -> None:
        if place >= 0 and following[place] < len(text):
            left, right = parts[place], parts[following[place]]
            rank = id_of.get(left + right) if ranks is None else ranks.get((left, right))
            if rank is not None:
                heapq.heappush(heap, (rank, place, left, right))

    for place in range(len(text)):
        offer(place)
    while heap:
        _, place, left, right = heapq.heappop(heap)
        other = following[place]
        if parts[place] != left or other == len(text) or parts[other] != right:
            continue  # one of the two was merged in the meantime
        parts[place], parts[other] = left + right, b""
        following[place] = following[other]
        before[following[place]] = place
        offer(place)
        offer(before[place])
    return [id_of[part] for part in parts if part]


def few_runs(rng: random.Random, size: int) -> bytes:
    letters = b"abc"[: rng.randint(1, 3)]
    longest = 2 ** rng.randint(2, 9)
    text = b""
    while len(text) < size:
        text += bytes([rng.choice(letters)]) * rng.randint(1, longest)
    return text[:size]


def fibonacci_word(size: int) -> bytes:
    a, b = b"a", b"ab"
    while len(b) < size:
        a, b = b, b + a
    return b[:size]


def encode_all(encoder: _core.TokenizerCore, pretokens: list[bytes]) -> list[int]:
    ends = np.cumsum([len(pretoken) for pretoken in pretokens], dtype=np.uint64)
    return [int(id_) for id_ in encoder.encode_pretokens(b"".join(pretokens), ends)]


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True], ids=["by merges", "whole"])
@pytest.mark.parametrize("rule", RULES)
def test_equals_the_reference(rule: Callable[[int], Vocabulary], whole: bool) -> None:
    """Sizes around lanes, groups of 64 and windows; random letters, a few runs, and one run."""
    entries, merges = rule(3)
    id_of = {entry: id_ for id_, entry in entries.items()}
    ranks = None if merges is None else {pair: rank for rank, pair in enumerate(merges)}
    rng = random.Random(3)
    short = [each for each in id_of if len(each) <= 200]
    for size in [*range(1, 36), 63, 64, 65, 127, 128, 129]:
        short += [bytes(rng.choices(letters, k=size)) for letters in (b"a", b"ab", b"abcd\xc3\xa9")]
    long = [each for each in id_of if len(each) > 200]
    long += [few_runs(rng, size) for size in (31, 33, 63, 66, 128, 129, 384, 385, 513, 1000, 4094, 4095)]
    longest = b"".join(sorted(id_of, key=len)[-3:])
    for size in (4096, 8193, 25_001):
        long += [bytes(rng.choices(b"abc", k=size)), b"b" + b"a" * size, fibonacci_word(size)]
        long += [(longest * size)[:size]]
    known = {each: encode_pretoken(each, id_of, ranks, whole) for each in short}
    for each in long:
        known[each] = [id_of[each]] if whole and each in id_of else encode_by_heap(each, id_of, ranks)
    pretokens = [*short, *long]
    rng.shuffle(pretokens)
    expected = [id_ for each in pretokens for id_ in known[each]]
    for variant in reversed(_core.simd_variants()):
        _core.set_simd_variant(variant)
        encoder = _core.EntryFile.from_entries(entries, merges).encoder({}, None, whole)
        for _ in range(2):  # cold, with repetitions; then from the cache
            assert encode_all(encoder, pretokens) == expected, variant


def test_a_pretoken_of_a_megabyte_is_encoded() -> None:
    size = 1 << 20
    drawn = bytes(random.Random(4).choices(b"abcdefgh", k=size))
    thue_morse = bytes(97 + i.bit_count() % 2 for i in range(size))
    doubling = [(letter * 2**k, letter * 2**k) for letter in [b"a", b" "] for k in range(12)]
    merges = trained(1, b"ab", 100) + trained(2, b"abcdefgh", 400) + doubling
    merges = list(dict.fromkeys(merges))
    encoder = _core.EntryFile.from_entries(entries_of(merges), merges).encoder({}, None, False)
    for text in (b"a" * size, drawn, fibonacci_word(size), thue_morse):
        ids = encoder.encode_pretokens(text, np.array([size], np.uint64))
        assert encoder.decode(ids) == text  # in 0.05 to 0.15 s; quadratic would be hours
