"""Packs that are rows of the stream: what is looked up in seq_starts, and seq_starts that change meanwhile."""

from __future__ import annotations

import numpy as np
import pytest
from packing_cases import InMemory, lengths_of, ranges_of, skipped_of

from flat_tokens.errors import DatasetError
from flat_tokens.packs import packing_split
from flat_tokens.packs.packing_split import LANDMARK_SEQS, SplitPlan


@pytest.mark.parametrize("block_seqs", [LANDMARK_SEQS, 2 * LANDMARK_SEQS, 2**18])
@pytest.mark.parametrize(
    "count", [1, LANDMARK_SEQS - 1, LANDMARK_SEQS, LANDMARK_SEQS + 1, 3 * LANDMARK_SEQS + 5]
)
def test_what_lies_in_front_of_a_pack(count: int, block_seqs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing_split, "BLOCK_SEQS", block_seqs)
    starts = InMemory(lengths_of("uniform", count, count, 9))
    plan = SplitPlan(starts, 7, None)
    total = int(starts.values[-1])
    assert plan.pack_count == -(-total // 7)
    for index in range(plan.pack_count):
        begin, stop = index * 7, min(index * 7 + 7, total)
        before = int(starts.values[np.searchsorted(starts.values, begin, "right") - 1])
        assert (ranges_of(plan, index), skipped_of(plan, index)) == ([(begin, stop)], [begin - before])


def test_packs_that_begin_where_a_landmark_does() -> None:
    plan = SplitPlan(InMemory([7] * (2 * LANDMARK_SEQS + 1)), 7, None)
    assert skipped_of(plan, 0, LANDMARK_SEQS, 2 * LANDMARK_SEQS) == [0, 0, 0]


@pytest.mark.parametrize("by", [1, 5, 100, -2, -5, -100])
def test_starts_that_change_are_told(by: int) -> None:
    """The landmarks are from before; a start looked up behind them would be another sequence's."""
    starts = InMemory([2] * (3 * LANDMARK_SEQS))
    plan = SplitPlan(starts, 2, None)
    assert skipped_of(plan, 3) == [0]
    first = 2 * LANDMARK_SEQS  # token: of the second landmark
    starts.values = starts.values.astype(np.int64)
    starts.values[LANDMARK_SEQS : 2 * LANDMARK_SEQS + 1] += by
    starts.values = np.maximum(starts.values, np.arange(len(starts.values))).astype(np.uint64)
    index = LANDMARK_SEQS if by > 0 else 2 * LANDMARK_SEQS - 1
    assert index * 2 == (first if by > 0 else 2 * first - 2)
    with pytest.raises(DatasetError, match="train/seq_starts"):
        skipped_of(plan, index)


@pytest.mark.parametrize("max_packs", [None, 1, 3, 40, 1000])
@pytest.mark.parametrize("block_seqs", [1, 7, 2**18])
def test_the_account(max_packs: int | None, block_seqs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing_split, "BLOCK_SEQS", block_seqs)
    lengths = lengths_of("uniform", 4, 100, 30)
    starts = InMemory(lengths)
    report = SplitPlan(starts, 12, max_packs).report()
    begins, ends = starts.values[:-1].tolist(), starts.values[1:].tolist()
    used = min(sum(lengths), 12 * report.pack_count)
    begun = [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < used]
    assert report.pack_count == min(-(-sum(lengths) // 12), max_packs or 1000)
    assert (report.tokens_used, report.tokens_lost) == (used, sum(lengths) - used)
    assert (report.seqs_used, report.seqs_lost) == (len(begun), len(lengths) - len(begun))
    assert report.seqs_split == sum(begin // 12 != (end - 1) // 12 for begin, end in begun)
