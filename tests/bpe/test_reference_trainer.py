"""The reference trainer equals a non-incremental one, which recounts all pairs before each merge."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import pytest

from bpe import reference

TIE_BREAKS = ["lexicographic", "huggingface"]


def train_naively(
    pretoken_counts: Mapping[bytes, int], new_entries: int, tie_break: str, min_frequency: int
) -> list[tuple[bytes, bytes]]:
    place = {bytes([byte]): place for place, byte in enumerate(reference.printable_bytes())}
    pretokens = [([bytes([byte]) for byte in pretoken], count) for pretoken, count in pretoken_counts.items()]
    merges: list[tuple[bytes, bytes]] = []
    while len(place) < 256 + new_entries:
        pair_counts: Counter[tuple[bytes, bytes]] = Counter()
        for parts, count in pretokens:
            for left, right in pairwise(parts):
                pair_counts[left, right] += count
        candidates = {pair: count for pair, count in pair_counts.items() if count >= max(1, min_frequency)}
        if not candidates:
            break
        highest = max(candidates.values())
        ties = [pair for pair, count in candidates.items() if count == highest]
        if tie_break == "lexicographic":
            best = max(ties)
        else:
            best = min(ties, key=lambda pair: (place[pair[0]], place[pair[1]]))
        merges.append(best)
        place.setdefault(best[0] + best[1], len(place))
        for parts, _ in pretokens:
            at = 0
            while at + 1 < len(parts):
                if (parts[at], parts[at + 1]) == best:
                    parts[at : at + 2] = [best[0] + best[1]]
                at += 1
    return merges


def random_counts(rng: random.Random) -> dict[bytes, int]:
    alphabet = rng.choice([b"a", b"ab", b"abc", b"ab \xff", bytes(range(256))])
    counts: dict[bytes, int] = {}
    for _ in range(rng.randint(0, 12)):
        pretoken = bytes(rng.choices(alphabet, k=rng.randint(1, 8))) * rng.choice([1, 1, 1, 2, 3])
        counts[pretoken] = rng.choice([1, 1, 2, 3, rng.randint(1, 100)])
    return counts


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("seed", range(100))
def test_incremental_equals_recounting(seed: int, tie_break: str) -> None:
    rng = random.Random(seed)
    counts = random_counts(rng)
    new_entries, min_frequency = rng.choice([1, 3, 40]), rng.choice([0, 1, 1, 3])
    expected = train_naively(counts, new_entries, tie_break, min_frequency)
    assert reference.train(counts, new_entries, tie_break, min_frequency) == expected


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_no_merge_makes_bytes_that_are_an_entry_already(tie_break: str) -> None:
    # The core relies on this order; trainer.hpp has the proof.
    rng = random.Random(1)
    for _ in range(300):
        merges = reference.train(random_counts(rng), 200, tie_break)
        products = [left + right for left, right in merges]
        assert len(set(products)) == len(products)


def test_example() -> None:
    assert reference.train({b"aab": 2, b"ab": 1}, 2) == [(b"a", b"b"), (b"a", b"ab")]


def test_ties_differ_between_the_rules() -> None:
    # " " is byte 32 but comes late in GPT-2's printable order.
    counts = {b" a": 1, b"bc": 1}
    assert reference.train(counts, 1, "lexicographic") == [(b"b", b"c")]
    assert reference.train(counts, 1, "huggingface") == [(b"b", b"c")]
    assert reference.train({b" a": 1, b"\xffa": 1}, 1, "lexicographic") == [(b"\xff", b"a")]
    assert reference.train({b" a": 1, b"\xffa": 1}, 1, "huggingface") == [(b"\xff", b"a")]
    assert reference.train({b"ab": 1, b"ba": 1}, 1, "lexicographic") == [(b"b", b"a")]
    assert reference.train({b"ab": 1, b"ba": 1}, 1, "huggingface") == [(b"a", b"b")]
