"""Best-fit decreasing by groups against plain words, and what a window's plan promises."""

from __future__ import annotations

import hashlib
import pickle
import random
from itertools import pairwise

import numpy as np
import pytest
from packing_cases import InMemory, lengths_of, ranges_of, skipped_of

from flat_tokens.errors import ArgumentError
from flat_tokens.packs import packing_best_fit
from flat_tokens.packs.packing_best_fit import (
    BestFitPlan,
    WindowPlan,
    best_fit_plainly,
    default_window_seqs,
    plan_window,
)


def places_of(plan: WindowPlan) -> tuple[np.ndarray, np.ndarray]:
    """Where the pieces of a plan begin and end in the dataset."""
    starts = plan.base + plan.starts.astype(np.int64)
    return starts, starts + plan.lengths


@pytest.mark.parametrize("limit", [1, 2, 7, 64, 300])
@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("kind", ["equal", "short", "full", "long tail", "uniform"])
def test_a_window_is_what_plain_words_say(kind: str, count: int, limit: int) -> None:
    lengths = lengths_of(kind, 5, count, limit)
    starts = np.cumsum([0, *lengths])
    plan = plan_window(starts, limit)
    plainly = best_fit_plainly(lengths, limit)
    pieces = plan.lengths.astype(np.int64)
    held = [int(pieces[first:stop].sum()) for first, stop in zip(plan.bounds, plan.bounds[1:], strict=False)]
    assert sorted(held) == sorted(map(sum, plainly))
    assert sorted(plan.starts.tolist()) == starts[:-1].tolist()
    assert sorted(places_of(plan)[1].tolist()) == starts[1:].tolist()


def test_packs_and_their_sequences_stay_in_the_datasets_order() -> None:
    lengths = lengths_of("long tail", 6, 3000, 100)
    plan = plan_window(np.cumsum([0, *lengths]), 100)
    starts, _ = places_of(plan)
    firsts = starts[plan.bounds[:-1]]
    assert (np.diff(firsts) > 0).all()
    for first, stop in zip(plan.bounds, plan.bounds[1:], strict=False):
        assert (np.diff(starts[first:stop]) > 0).all()


def test_long_sequences_are_cut_to_full_packs_and_a_rest() -> None:
    plan = plan_window(np.array([0, 3, 5, 9, 29]), 6)
    starts, stops = places_of(plan)
    packs = [
        list(zip(starts[a:b].tolist(), stops[a:b].tolist(), strict=True))
        for a, b in zip(plan.bounds, plan.bounds[1:], strict=False)
    ]
    assert packs == [[(0, 3), (27, 29)], [(3, 5), (5, 9)], [(9, 15)], [(15, 21)], [(21, 27)]]


@pytest.mark.parametrize("window_seqs", [1, 7, 64, 1000, 10**6])
@pytest.mark.parametrize("split", [False, True])
def test_every_token_is_in_one_pack(window_seqs: int, split: bool) -> None:
    rng = random.Random(window_seqs)
    lengths = [rng.randint(1, 50 if split else 20) for _ in range(1000)]
    starts = InMemory(lengths)
    plan = BestFitPlan(starts, 20, None, window_seqs, split)
    order = list(range(plan.pack_count))
    rng.shuffle(order)  # any pack, in any order, from windows that are dropped and planned again
    seen = np.zeros(sum(lengths), int)
    for index in order:
        ranges = ranges_of(plan, index)
        assert skipped_of(plan, index) == [0]
        assert 0 < sum(stop - start for start, stop in ranges) <= 20
        for start, stop in ranges:
            seen[start:stop] += 1
    assert (seen == 1).all()
    report = plan.report()
    assert (report.tokens_used, report.tokens_lost, report.seqs_lost) == (sum(lengths), 0, 0)
    assert report.seqs_split == sum(length > 20 for length in lengths)


@pytest.mark.parametrize("max_packs", [1, 10, 77, 150, 10**6])
def test_the_account_of_some_packs(max_packs: int) -> None:
    rng = random.Random(9)
    lengths = [rng.choice([rng.randint(1, 50), 20, 21, 40]) for _ in range(300)] + [20, 41]
    starts = InMemory(lengths)
    plan = BestFitPlan(starts, 20, max_packs, 64, True)
    ranges = [piece for index in range(plan.pack_count) for piece in ranges_of(plan, index)]
    owner = np.searchsorted(starts.values, [start for start, _ in ranges], "right") - 1
    report = plan.report()
    assert report.pack_count == plan.pack_count <= max_packs
    assert report.tokens_used == sum(stop - start for start, stop in ranges)
    assert report.tokens_used + report.tokens_lost == sum(lengths)
    assert report.seqs_used == len(set(owner.tolist()))
    assert report.seqs_used + report.seqs_lost == len(lengths)
    assert report.seqs_split == sum(lengths[index] > 20 for index in set(owner.tolist()))


GOLDEN_PLANS = [
    # kind, seed, count, limit; digest of bounds, starts and stops
    ("long tail", 6, 3000, 100, "55d969dc54477c58"),
    ("uniform", 7, 1000, 64, "d91763031d34da80"),
    ("uniform", 8, 5000, 2048, "78f4d4d1708c417f"),
    ("in turns", 9, 3000, 90, "34f3e2ff96cad2a8"),
    ("equal", 0, 200, 300, "0f9d88ea9bc7e377"),
]


@pytest.mark.parametrize(("kind", "seed", "count", "limit", "digest"), GOLDEN_PLANS)
def test_golden_plans(kind: str, seed: int, count: int, limit: int, digest: str) -> None:
    """Which sequences share a pack, and the order of packs, are the same in every version: a run reads on."""
    assert digest_of(np.cumsum([0, *lengths_of(kind, seed, count, limit)]), limit) == digest


def test_golden_plan_of_cut_sequences() -> None:
    lengths = np.random.default_rng(3).integers(1, 300, 2000)
    assert digest_of(np.cumsum([0, *lengths.tolist()]), 64) == "5bda14f9e0abd1ed"


def digest_of(starts: np.ndarray, limit: int) -> str:
    plan = plan_window(starts, limit)
    arrays = (plan.bounds.astype(np.int64), *places_of(plan))
    return hashlib.sha256(b"".join(array.astype("<i8").tobytes() for array in arrays)).hexdigest()[:16]


def test_padding_of_a_usual_corpus_is_below_a_thousandth() -> None:
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(5.9, 1, 60_000), 1, 2048).astype(int)
    report = BestFitPlan(InMemory(lengths.tolist()), 2048, None, default_window_seqs(2048), False).report()
    assert report.padded_fraction < 0.001


def test_a_long_sequence_is_told() -> None:
    with pytest.raises(ArgumentError, match="train.*max_seq_len"):
        BestFitPlan(InMemory([1, 2, 9]), 8, None, 2, False)


def test_packs_in_any_order_cost_one_plan_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []

    def noted(starts: np.ndarray, max_seq_len: int) -> WindowPlan:
        planned.append(int(starts[0]))
        return plan_window(starts, max_seq_len)

    monkeypatch.setattr(packing_best_fit, "plan_window", noted)
    lengths = np.random.default_rng(5).integers(1, 20, 900).tolist()
    plan = BestFitPlan(InMemory(lengths), 20, None, 50, False)
    order = np.random.default_rng(6).permutation(plan.pack_count).tolist()
    found = [ranges_of(plan, index) for index in order]
    assert len(planned) == len(set(planned)) == 900 // 50
    copy = pickle.loads(pickle.dumps(plan))
    assert [ranges_of(copy, index) for index in order] == found
    assert ranges_of(copy, *order) == [piece for pieces in found for piece in pieces]


def test_plans_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing_best_fit, "LARGEST_PLANS_BYTES", 1000)
    lengths = np.random.default_rng(5).integers(1, 20, 900).tolist()
    plan = BestFitPlan(InMemory(lengths), 20, None, 50, False)
    most = 0
    for index in np.random.default_rng(6).permutation(plan.pack_count).tolist():
        ranges_of(plan, index)
        most = max(most, len(plan._windows))
        kept = sum(window.kept_bytes for window in plan._windows.values())
        assert kept == plan._kept_bytes <= 1000
    assert most > 1
    monkeypatch.setattr(packing_best_fit, "LARGEST_PLANS_BYTES", 1)
    ranges_of(plan, 0)
    assert len(plan._windows) == 1  # the one in use


def test_a_plan_takes_few_bytes_a_sequence() -> None:
    lengths = np.random.default_rng(5).integers(1, 300, 60_000)
    plan = plan_window(2**40 + np.cumsum([0, *lengths.tolist()]), 2048)
    assert plan.kept_bytes < 7 * len(lengths)
    assert plan.base == 2**40


@pytest.mark.parametrize("max_seq_len", [2**16 - 1, 2**16, 70_000])
def test_lengths_of_more_than_16_bits_go_longest_first(max_seq_len: int) -> None:
    lengths = np.array([1, max_seq_len - 1, 1000, 30_000, max_seq_len])
    plan = packing_best_fit.plan_window(np.concatenate([[0], np.cumsum(lengths)]), max_seq_len)
    packs = [plan.lengths[start:stop].tolist() for start, stop in pairwise(plan.bounds.tolist())]
    assert packs == [[1, max_seq_len - 1], [1000, 30_000], [max_seq_len]]
