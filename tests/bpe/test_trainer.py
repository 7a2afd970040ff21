"""The native trainer equals the reference, for every ID width and thread count, and rejects bad counts."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from itertools import accumulate

import numpy as np
import pytest

from bpe import _core, reference
from bpe.pretoken_counts.memory import used_bytes

TIE_BREAKS = ["lexicographic", "huggingface"]

BYTES = [bytes([byte]) for byte in reference.printable_bytes()]

Merges = list[tuple[bytes, bytes]]


def train_natively(
    counts: Mapping[bytes, int],
    new_entries: int,
    tie_break: str = "lexicographic",
    min_frequency: int = 1,
    threads: int = 1,
    wide: bool = False,
    first_pairs: int = 1000,
    max_token_bytes: int = 0,
    max_tracked_pairs: int = 0,
) -> tuple[Merges, list[int]]:
    """Return (merges as bytes, pair counts) of the core, and check its IDs."""
    ends = np.array(list(accumulate(map(len, counts))), dtype=np.uint64)
    weights = np.array(list(counts.values()), dtype=np.uint64)
    pairs, pair_counts = _core.train_merges(
        b"".join(counts),
        ends,
        weights,
        new_entries,
        tie_break,
        min_frequency,
        threads,
        None,
        BYTES,
        wide=wide,
        first_pairs=first_pairs,
        max_token_bytes=max_token_bytes,
        max_tracked_pairs=max_tracked_pairs,
    )
    assert pairs.dtype == np.uint32
    assert pairs.shape == (len(pair_counts), 2)
    entries = list(BYTES)
    merges = []
    for left, right in pairs.tolist():
        merges.append((entries[left], entries[right]))
        entries.append(entries[left] + entries[right])
    return merges, pair_counts.tolist()


def random_counts(rng: random.Random) -> dict[bytes, int]:
    """Use small alphabets for ties and runs, and counts that span many thresholds of the trainer."""
    alphabet = rng.choice([b"a", b"ab", b"abc", b"ab \xff", b"abcdefgh", bytes(range(256))])
    counts: dict[bytes, int] = {}
    for _ in range(rng.randint(0, 30)):
        pretoken = bytes(rng.choices(alphabet, k=rng.randint(1, 12))) * rng.choice([1, 1, 1, 2, 4])
        counts[pretoken] = rng.choice(
            [1, 1, 2, 3, rng.randint(1, 50), rng.randint(1, 10**7), 2 ** rng.randint(1, 53)]
        )
    return counts


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
@pytest.mark.parametrize("seed", range(8))
def test_merges_equal_the_reference_on_random_corpora(seed: int, wide: bool, tie_break: str) -> None:
    rng = random.Random(seed)
    for case in range(120):
        counts = random_counts(rng)
        new_entries, min_frequency = rng.choice([0, 1, 5, 30, 300]), rng.choice([0, 1, 1, 2, 5, 1000])
        expected = reference.train(counts, new_entries, tie_break, min_frequency)
        merges, pair_counts = train_natively(
            counts,
            new_entries,
            tie_break,
            min_frequency,
            rng.choice([1, 2, 3]),
            wide,
            first_pairs=rng.choice([1, 5, 1000]),
            max_tracked_pairs=rng.choice([0, 1, 2, 20]),
        )
        assert merges == expected, (seed, case)
        assert pair_counts == sorted(pair_counts, reverse=True), (seed, case)


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("max_token_bytes", [1, 2, 3, 4, 7, 8, 9, 16, 100])
def test_no_entry_is_longer_than_max_token_bytes(max_token_bytes: int, tie_break: str) -> None:
    rng = random.Random(max_token_bytes)
    for case in range(60):
        counts, new_entries, first_pairs = (
            random_counts(rng),
            rng.choice([5, 60, 300]),
            rng.choice([1, 9, 1000]),
        )
        expected = reference.train(counts, new_entries, tie_break, max_token_bytes=max_token_bytes)
        merges, _ = train_natively(
            counts,
            new_entries,
            tie_break,
            first_pairs=first_pairs,
            max_token_bytes=max_token_bytes,
            max_tracked_pairs=rng.choice([0, 1, 20]),
        )
        assert merges == expected, case
        assert all(len(left + right) <= max_token_bytes for left, right in merges)


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33])
@pytest.mark.parametrize("unit", [b"a", b"ab", b"aab", b"aba", b"abcab"], ids=bytes.decode)
def test_runs(unit: bytes, length: int, tie_break: str) -> None:
    counts = {(unit * length)[:length]: 3, b"b" + unit * (length // 2): 2}
    assert train_natively(counts, 50, tie_break)[0] == reference.train(counts, 50, tie_break)


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**59])
def test_counts_are_exact(count: int, tie_break: str) -> None:
    # A difference of one decides; 32-bit counts and floats would see ties.
    counts = {b"ab": count, b"cd": count + 1, b"ef": count - 1, b"xab": 1}
    merges, pair_counts = train_natively(counts, 4, tie_break)
    assert merges == reference.train(counts, 4, tie_break)
    assert pair_counts == [count + 1, count + 1, count - 1, 1]


def test_more_than_16_bit_ids() -> None:
    rng = random.Random(5)
    counts = {rng.randbytes(8): rng.randint(1, 3) for _ in range(60_000)}
    first, _ = train_natively(counts, 40_000)
    merges, pair_counts = train_natively(counts, 70_000)
    assert len(merges) == 70_000
    assert merges[:40_000] == first
    assert (merges, pair_counts) == train_natively(counts, 70_000, wide=True)
    # Lists of tens of thousands of pairs, with nearly every right ID for each left one.
    assert train_natively(counts, 500, first_pairs=10**6)[0] == merges[:500]


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_threads_share_scans_and_long_lists(tie_break: str) -> None:
    # More slots than one thread scans, and pairs with more occurrences than one thread merges, with runs.
    rng = random.Random(17)
    counts = {
        bytes(rng.choices(b"aabcdef ", k=rng.randint(2, 14))): rng.randint(1, 40) for _ in range(160_000)
    }
    assert sum(map(len, counts)) + len(counts) > 1 << 20
    expected = train_natively(counts, 600, tie_break, threads=1)
    for threads, first_pairs, max_tracked_pairs in [(2, 1000, 0), (3, 20, 0), (5, 1000, 300), (1, 20, 300)]:
        assert expected == train_natively(
            counts,
            600,
            tie_break,
            threads=threads,
            first_pairs=first_pairs,
            max_tracked_pairs=max_tracked_pairs,
        )


def test_threads_share_lists_of_one_long_pretoken() -> None:
    # All occurrences of a pair in a pretoken of megabytes: searching for the start from each one took hours.
    rng = random.Random(3)
    counts = {bytes(rng.choices(b"abcdefgh", k=3 << 20)): 3, b" abc": 5}
    expected = train_natively(counts, 40, threads=1)
    for threads in (2, 3):
        assert train_natively(counts, 40, threads=threads) == expected


def random_vocabulary(rng: random.Random, alphabet: bytes) -> tuple[list[bytes], Merges]:
    """Return (entries, merges) that no training makes: any order, several splits of an entry, unreachable entries."""
    entries, merges = list(BYTES), []
    rng.shuffle(entries)
    for _ in range(rng.randint(0, 25)):
        pair = tuple(rng.choices([entry for entry in entries if set(entry) <= set(alphabet)], k=2))
        if pair in merges:
            continue
        if rng.random() < 0.8:
            merges.append(pair)
        if b"".join(pair) not in entries:
            entries.append(b"".join(pair))
    merges = [pair for pair in merges if b"".join(pair) in entries]
    rng.shuffle(merges)
    return entries, merges


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("seed", range(6))
def test_going_on_from_a_vocabulary_equals_the_reference(seed: int, tie_break: str) -> None:
    rng = random.Random(seed)
    for case in range(80):
        counts = random_counts(rng)
        entries, merges = random_vocabulary(rng, b"".join(counts)[:9] or b"a")
        id_of = {entry: id_ for id_, entry in enumerate(entries)}
        ranks = {pair: rank for rank, pair in enumerate(merges)}
        whole, reserved = rng.random() < 0.3, [b"ab", b"aab"][: rng.randint(0, 2)]
        max_token_bytes = rng.choice([0, 3, 9])
        pretokens = [reference.encode_pretoken(pretoken, id_of, ranks, whole) for pretoken in counts]
        pairs, _ = _core.train_merges(
            np.array([id_ for ids in pretokens for id_ in ids], np.uint32),
            np.array(list(accumulate(map(len, pretokens))), np.uint64),
            np.array(list(counts.values()), np.uint64),
            60,
            tie_break,
            1,
            rng.choice([1, 2]),
            None,
            entries,
            reserved,
            wide=rng.random() < 0.3,
            first_pairs=rng.choice([1, 5, 1000]),
            max_token_bytes=max_token_bytes,
            max_tracked_pairs=rng.choice([0, 1, 20]),
        )
        known, made = list(entries), []
        for left, right in pairs.tolist():
            made.append((known[left], known[right]))
            known.append(known[left] + known[right])
        expected = reference.train(
            counts, 60, tie_break, 1, max_token_bytes, entries, merges, whole, reserved
        )
        assert made == expected, (seed, case)
        assert len(set(known)) == len(known)
        assert not {left + right for left, right in made} & set(reserved)


def test_ids_and_entries_that_do_not_fit_are_refused() -> None:
    one = np.array([1], np.uint64), np.array([1], np.uint64)
    with pytest.raises(ValueError, match="id 2"):
        _core.train_merges(np.array([2], np.uint32), *one, 1, "lexicographic", 1, 1, None, [b"a", b"b"])
    with pytest.raises(ValueError, match="each of the 256 bytes once"):
        _core.train_merges(b"a", *one, 1, "lexicographic", 1, 1, None, [b"a"] * 256)


def test_repeated_pretokens_and_zero_counts() -> None:
    ends = np.array([2, 2, 4, 6], dtype=np.uint64)
    counts = np.array([1, 9, 1, 0], dtype=np.uint64)
    pairs, pair_counts = _core.train_merges(b"ababcd", ends, counts, 9, "lexicographic", 1, 1, None)
    assert pairs.tolist() == [[ord("a"), ord("b")]]
    assert pair_counts.tolist() == [2]


def test_the_highest_count_is_trained_with() -> None:
    ends, counts = np.array([1, 3], np.uint64), np.array([2**63 - 5, 2], np.uint64)
    _, pair_counts = _core.train_merges(b"aab", ends, counts, 1, "lexicographic", 1, 1, None)
    assert pair_counts.tolist() == [2]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_for_pair_counts_is_reserved_first() -> None:
    """If no pair is frequent, no other allocation would detect the excess."""
    ids = np.random.default_rng(1).integers(0, 512, 1 << 20).astype(np.uint32)
    ends = np.arange(16, len(ids) + 1, 16, dtype=np.uint64)
    entries = [*BYTES, *(b"a" + byte for byte in BYTES)]

    def train(more_bytes: int) -> int:
        """Return the number of merges. The counts take 16 MiB, everything else less than 4."""
        ones, limit = np.ones(len(ends), np.uint64), used_bytes() + more_bytes
        return len(
            _core.train_merges(
                ids, ends, ones, 1, "lexicographic", 1000, 1, None, entries, memory_limit=limit
            )[1]
        )

    with pytest.raises(MemoryError):
        train(14 << 20)
    assert train(100 << 20) == 0


@pytest.mark.parametrize(
    ("ends", "counts", "tie_break", "message"),
    [
        ([1, 2], [1], "lexicographic", "2 ends but 1 counts"),
        ([2, 1], [1, 1], "lexicographic", r"ends\[1\] = 1 is not in \[2, 2\]"),
        ([3], [1], "lexicographic", r"ends\[0\] = 3"),
        ([1], [1], "lexicographic", "the last end is 1 but there are 2 bytes or ids"),
        ([2], [2**63], "lexicographic", "pass 2\\^63"),
        ([2], [1], "random", "unknown tie_break 'random'"),
    ],
)
def test_core_refuses(ends: list[int], counts: list[int], tie_break: str, message: str) -> None:
    arrays = np.array(ends, dtype=np.uint64), np.array(counts, dtype=np.uint64)
    with pytest.raises(ValueError, match=message):
        _core.train_merges(b"ab", *arrays, 1, tie_break, 1, 1, None)
