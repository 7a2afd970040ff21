"""Shares of sources: exact for any weights and number of draws, and never decreasing with more draws."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flat_tokens.errors import ArgumentError
from flat_tokens.order.shares import Shares

WEIGHTS: list[list[Any]] = [
    [5],
    [1, 1],
    [1e-5, 1 - 1e-5],
    [1e-300, 1],
    [0.7, 0.2, 0.1],
    [Fraction(1, 3), 0.25, 2],
    [1] * 7,
    [2.0**-n for n in range(12)],
    [1, 1, 2, 3, 5, 8, 13, 21, 34, 55],
    [random.Random(3).random() for _ in range(40)],
]


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_counts_rise_and_stay_near_the_share(weights: list[Any]) -> None:
    shares = Shares(weights)
    exact = [Fraction(weight) / sum(map(Fraction, weights)) for weight in weights]
    assert shares.fractions == exact
    bound = 1 if len(weights) <= 2 else 4
    seldom = int(1 / min(exact)) if min(exact) > 1e-18 else 10**18
    for stream in range(3):
        for base in (0, seldom - 50, 10**15 + 7):
            former: list[int] | None = None
            for draws in range(base, base + 100):
                counts = shares.drawn(draws, stream, 3)
                assert sum(counts) == draws
                assert all(
                    abs(count - draws * share) < bound for count, share in zip(counts, exact, strict=True)
                )
                if former is not None:
                    assert sorted(b - a for a, b in zip(former, counts, strict=True)) == [0] * (
                        len(weights) - 1
                    ) + [1]
                former = counts


def test_whole_numbers_are_met_in_every_stream() -> None:
    shares = Shares([1, 2, 5])
    for draws, stream in itertools.product((8, 4096, 2**60), range(8)):
        assert shares.drawn(draws, stream, 8) == [draws // 8, draws // 4, draws // 8 * 5]
    assert Shares([1, 3]).drawn(10) == [3, 7]


def test_streams_round_at_different_times() -> None:
    shares = Shares([1e-3, 1])
    exact = shares.fractions[0]
    for draws in range(0, 3000, 7):
        together = sum(shares.drawn(draws, stream, 8)[0] for stream in range(8))
        assert abs(together - 8 * draws * exact) <= Fraction(1, 2)


def test_numbers_of_any_kind_are_taken_exactly() -> None:
    third = Shares([np.float32(0.1), np.int64(2**62), Decimal("0.1"), Fraction(1, 3)]).fractions
    total = Fraction(float(np.float32(0.1))) + 2**62 + Fraction(1, 10) + Fraction(1, 3)
    assert third[0] == Fraction(float(np.float32(0.1))) / total
    assert third[2] == Fraction(1, 10) / total


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "1", None, [1], 1j])
def test_refused(weight: Any) -> None:
    with pytest.raises(ArgumentError, match="weights"):
        Shares([1, weight])
