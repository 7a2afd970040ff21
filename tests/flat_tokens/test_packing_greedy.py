"""The vectorised next-fit planner against plain words."""

from __future__ import annotations

import numpy as np
import pytest
from packing_cases import InMemory, lengths_of

from flat_tokens.errors import ArgumentError, DatasetError
from flat_tokens.packs import packing_greedy
from flat_tokens.packs.packing_greedy import LANE_SEQS, next_fit, next_fit_plainly, plan_greedy

KINDS = ("equal", "short", "full", "long tail", "in turns", "uniform")
COUNTS = (0, 1, 2, LANE_SEQS - 1, LANE_SEQS, LANE_SEQS + 1, 4 * LANE_SEQS - 1, 5000)


@pytest.mark.parametrize("limit", [1, 7, 64, 5000])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_next_fit_is_what_plain_words_say(kind: str, count: int, limit: int) -> None:
    lengths = lengths_of(kind, 1, count, limit)
    starts = np.cumsum([0, *lengths])
    assert next_fit(starts, limit).tolist() == next_fit_plainly(lengths, limit)


def test_next_fit_beyond_32_bits() -> None:
    lengths = lengths_of("uniform", 2, 1000, 2**33)
    assert next_fit(np.cumsum([0, *lengths]), 2**33).tolist() == next_fit_plainly(lengths, 2**33)


@pytest.mark.parametrize("block_seqs", [1, 2, 3, 300, 1024])
@pytest.mark.parametrize("max_packs", [None, 1, 2, 100, 10**9])
@pytest.mark.parametrize("kind", ["long tail", "short", "in turns", "full"])
def test_blocks_do_not_change_the_plan(
    kind: str, max_packs: int | None, block_seqs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing_greedy, "BLOCK_SEQS", block_seqs)
    lengths = lengths_of(kind, 3, 700, 90)
    starts = InMemory(lengths)
    packs = next_fit_plainly(lengths, 90)
    stop = len(lengths) if max_packs is None or max_packs >= len(packs) else packs[max_packs]
    bounds, seq_stop = plan_greedy(starts, 90, max_packs)
    assert seq_stop == stop
    assert bounds.dtype == np.uint64
    assert bounds.tolist() == starts.values[[*packs[:max_packs], stop]].tolist()


def test_no_sequences() -> None:
    bounds, seq_stop = plan_greedy(InMemory([]), 8)
    assert (bounds.tolist(), seq_stop) == ([0], 0)


@pytest.mark.parametrize("block_seqs", [1, 2, 2**18])
def test_a_long_sequence_is_told_unless_no_pack_reaches_it(
    block_seqs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing_greedy, "BLOCK_SEQS", block_seqs)
    starts = InMemory([4, 4, 3, 9, 1])
    with pytest.raises(ArgumentError, match="train.*max_seq_len"):
        plan_greedy(starts, 8)
    assert plan_greedy(starts, 8, max_packs=1)[0].tolist() == [0, 8]
    assert plan_greedy(starts, 8, max_packs=2)[0].tolist() == [0, 8, 11]
    with pytest.raises(ArgumentError):
        plan_greedy(starts, 8, max_packs=3)


def test_starts_that_fall_are_told() -> None:
    starts = InMemory([4, 4, 3])
    starts.values[2] = 4
    with pytest.raises(DatasetError, match=r"train/seq_starts\[2\]: .*train/seq_starts\[1\]"):
        plan_greedy(starts, 8)
