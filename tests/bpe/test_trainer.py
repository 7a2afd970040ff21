"""The reference trainer equals one that recounts all pairs, and the native trainer equals the reference."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe import _core, reference
from bpe.pretoken_counts.memory import used_bytes
from tests.strategies import examples

TIE_BREAKS = ["lexicographic", "huggingface"]
BYTES = [bytes([byte]) for byte in reference.printable_bytes()]

Merges = list[tuple[bytes, bytes]]


@st.composite
def pretoken_counts(draw: st.DrawFn) -> dict[bytes, int]:
    """Pretokens of few letters, for ties and runs, with counts that span many thresholds of the trainer."""
    alphabet = draw(st.sampled_from([b"a", b"ab", b"abc", b"ab \xff", b"abcdefgh", bytes(range(256))]))
    short = st.lists(st.sampled_from(alphabet), min_size=1, max_size=12).map(bytes)
    repeated = st.tuples(short, st.sampled_from([1, 1, 1, 2, 4, 9])).map(lambda drawn: drawn[0] * drawn[1])
    count = st.sampled_from([1, 1, 2, 3]) | st.integers(1, 50) | st.integers(1, 2**53)
    return draw(st.dictionaries(repeated, count, max_size=30))


def train_natively(
    counts: Mapping[bytes, int],
    new_entries: int,
    tie_break: str = "lexicographic",
    min_frequency: int = 1,
    threads: int = 1,
    entries: Sequence[bytes] = BYTES,
    reserved: Sequence[bytes] = (),
    encoded: Sequence[Sequence[int]] | None = None,
    **options: Any,
) -> tuple[Merges, list[int]]:
    """Return (merges as bytes, pair counts) of the core. encoded: the pretokens as IDs of entries."""
    pairs, pair_counts = _core.train_merges(
        b"".join(counts) if encoded is None else np.array([id_ for ids in encoded for id_ in ids], np.uint32),
        np.array(list(accumulate(map(len, counts if encoded is None else encoded))), np.uint64),
        np.array(list(counts.values()), np.uint64),
        new_entries,
        tie_break,
        min_frequency,
        threads,
        None,
        entries,
        reserved,
        **options,
    )
    assert pairs.dtype == np.uint32
    assert pairs.shape == (len(pair_counts), 2)
    known, merges = list(entries), []
    for left, right in pairs.tolist():
        merges.append((known[left], known[right]))
        known.append(known[left] + known[right])
    return merges, pair_counts.tolist()


def test_ties_differ_between_the_rules() -> None:
    # " " is byte 32 but comes late in GPT-2's printable order.
    assert reference.train({b"aab": 2, b"ab": 1}, 2) == [(b"a", b"b"), (b"a", b"ab")]
    for counts, lexicographic, huggingface in [
        ({b" a": 1, b"bc": 1}, (b"b", b"c"), (b"b", b"c")),
        ({b" a": 1, b"\xffa": 1}, (b"\xff", b"a"), (b"\xff", b"a")),
        ({b"ab": 1, b"ba": 1}, (b"b", b"a"), (b"a", b"b")),
    ]:
        assert reference.train(counts, 1, "lexicographic") == [lexicographic]
        assert reference.train(counts, 1, "huggingface") == [huggingface]


@st.composite
def vocabularies(draw: st.DrawFn, counts: dict[bytes, int]) -> tuple[list[bytes], Merges]:
    """Entries and merges that no training makes: any order, several splits of an entry, unreachable entries."""
    rng = random.Random(draw(st.integers(0, 999)))
    alphabet = {*b"".join(counts)[:9]} or {97}
    entries, merges = list(BYTES), []
    rng.shuffle(entries)
    for _ in range(rng.randint(0, 25)):
        left, right = rng.choices([entry for entry in entries if set(entry) <= alphabet], k=2)
        if rng.random() < 0.8 and (left, right) not in merges:
            merges.append((left, right))
        if left + right not in entries:
            entries.append(left + right)
    rng.shuffle(merges)
    return entries, merges


@pytest.mark.slow
@pytest.mark.promise("merges")
@examples(25)
@given(st.data(), pretoken_counts(), st.sampled_from(TIE_BREAKS))
def test_merges_equal_the_reference(data: st.DataObject, counts: dict[bytes, int], tie_break: str) -> None:
    new_entries = data.draw(st.sampled_from([0, 1, 5, 60, 300]))
    min_frequency = data.draw(st.sampled_from([0, 1, 1, 2, 5, 1000]))
    max_token_bytes = data.draw(st.sampled_from([0, 0, 1, 2, 3, 4, 7, 8, 9, 16, 100]))
    start: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    if data.draw(st.booleans()):
        entries, first_merges = data.draw(vocabularies(counts))
        whole, reserved = data.draw(st.booleans()), data.draw(st.sampled_from([[], [b"ab"], [b"ab", b"aab"]]))
        id_of = {entry: id_ for id_, entry in enumerate(entries)}
        ranks = {pair: rank for rank, pair in enumerate(first_merges)}
        encoded = [reference.encode_pretoken(pretoken, id_of, ranks, whole) for pretoken in counts]
        start = {"entries": entries, "reserved": reserved, "encoded": encoded}
        expected = {"first_entries": entries, "first_merges": first_merges, "ignore_merges": whole}
        expected["reserved"] = reserved
    merges, pair_counts = train_natively(
        counts,
        new_entries,
        tie_break,
        min_frequency,
        data.draw(st.integers(1, 3), "threads"),
        **start,
        wide=data.draw(st.booleans(), "wide"),
        first_pairs=data.draw(st.sampled_from([1, 5, 1000]), "first_pairs"),
        max_token_bytes=max_token_bytes,
        max_tracked_pairs=data.draw(st.sampled_from([0, 1, 2, 20]), "max_tracked_pairs"),
    )
    assert merges == reference.train(
        counts, new_entries, tie_break, min_frequency, max_token_bytes, **expected
    )
    assert pair_counts == sorted(pair_counts, reverse=True)


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@pytest.mark.parametrize("count", [2**31, 2**32, 2**53, 2**59])
def test_counts_are_exact(count: int, tie_break: str) -> None:
    """A difference of one decides; 32-bit counts and floats would see ties."""
    counts = {b"ab": count, b"cd": count + 1, b"ef": count - 1, b"xab": 1}
    merges, pair_counts = train_natively(counts, 4, tie_break)
    assert merges == reference.train(counts, 4, tie_break)
    assert pair_counts == [count + 1, count + 1, count - 1, 1]


@pytest.mark.long
def test_more_than_16_bit_ids() -> None:
    rng = random.Random(5)
    counts = {rng.randbytes(8): rng.randint(1, 3) for _ in range(60_000)}
    merges, pair_counts = train_natively(counts, 70_000)
    assert len(merges) == 70_000
    assert merges[:40_000] == train_natively(counts, 40_000)[0]
    assert (merges, pair_counts) == train_natively(counts, 70_000, wide=True)
    # Lists of tens of thousands of pairs, with nearly every right ID for each left one.
    assert train_natively(counts, 500, first_pairs=10**6)[0] == merges[:500]


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_threads_share_passes(tie_break: str) -> None:
    """There are more slots than one thread reads."""
    rng = random.Random(17)
    counts = {
        bytes(rng.choices(b"aabcdef ", k=rng.randint(2, 14))): rng.randint(1, 40) for _ in range(160_000)
    }
    assert sum(map(len, counts)) + len(counts) > 1 << 20
    expected = train_natively(counts, 600, tie_break)
    for threads, first_pairs, max_tracked_pairs in [(2, 1000, 0), (3, 20, 0), (5, 1000, 300)]:
        more: dict[str, Any] = {"first_pairs": first_pairs, "max_tracked_pairs": max_tracked_pairs}
        assert expected == train_natively(counts, 600, tie_break, threads=threads, **more)


def test_one_long_pretoken() -> None:
    """Searching for the start of the pretoken from each occurrence took hours."""
    counts = {bytes(random.Random(3).choices(b"abcdefgh", k=3 << 20)): 3, b" abc": 5}
    assert train_natively(counts, 40, threads=2) == train_natively(counts, 40)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_for_pair_counts_is_reserved_first() -> None:
    """If no pair is frequent, no other allocation would detect the excess."""
    ids = np.random.default_rng(1).integers(0, 512, 1 << 20).astype(np.uint32)
    ends = np.arange(16, len(ids) + 1, 16, dtype=np.uint64)
    entries = [*BYTES, *(b"a" + byte for byte in BYTES)]

    def train(more_bytes: int) -> int:
        """Return the number of merges. The counts take 16 MiB, everything else less than 4."""
        ones, limit = np.ones(len(ends), np.uint64), used_bytes() + more_bytes
        merging = (ids, ends, ones, 1, "lexicographic", 1000, 1, None, entries)
        return len(_core.train_merges(*merging, memory_limit=limit)[1])

    with pytest.raises(MemoryError):
        train(14 << 20)
    assert train(100 << 20) == 0
