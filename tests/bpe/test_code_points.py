"""Sets of code points equal Python sets without surrogates."""

from __future__ import annotations

import random
from itertools import pairwise

from bpe.pretokenization.code_points import END, CodePoints

SURROGATES = set(range(0xD800, 0xE000))
EDGES = [0, 1, 2, 0x7F, 0x80, 0xD7FE, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xE001, 0xFFFF, 0x10000]


def random_points(generator: random.Random) -> tuple[CodePoints, set[int]]:
    ranges = []
    for _ in range(generator.randint(0, 5)):
        start, stop = sorted(generator.choices([*EDGES, *range(40)], k=2))
        ranges.append((start, stop))
    return CodePoints.of(*ranges), {point for span in ranges for point in range(*span)} - SURROGATES


def members(points: CodePoints) -> set[int]:
    return {point for start, stop in points.ranges for point in range(start, stop)}


def assert_normal(points: CodePoints) -> None:
    edges = [edge for span in points.ranges for edge in span]
    assert all(before < after for before, after in pairwise(edges)), points
    assert not any(start < 0xE000 and stop > 0xD800 for start, stop in points.ranges)


def test_operations_equal_set_operations() -> None:
    generator = random.Random(5)
    for _ in range(60):
        (left, left_members), (right, right_members) = random_points(generator), random_points(generator)
        for result, expected in [
            (left, left_members),
            (left | right, left_members | right_members),
            (left & right, left_members & right_members),
            (left - right, left_members - right_members),
            (CodePoints.union([left, right, left]), left_members | right_members),
        ]:
            assert_normal(result)
            assert members(result) == expected
            assert len(result) == len(expected)
            assert bool(result) == bool(expected)
        for point in [*EDGES, *range(45)]:
            assert (point in left) == (point in left_members)


def test_a_set_and_its_complement_partition_the_code_points() -> None:
    generator = random.Random(6)
    for _ in range(40):
        points, _ = random_points(generator)
        opposite = ~points
        assert_normal(opposite)
        assert ~opposite == points
        assert not points & opposite
        assert len(points) + len(opposite) == END - len(SURROGATES)


def test_texts_and_ranges_make_a_set() -> None:
    assert CodePoints.of("ab", (0x30, 0x3A)).ranges == ((48, 58), (97, 99))
    assert CodePoints.of("ba", "c", (99, 99), (98, 101)).ranges == ((97, 101),)
    assert CodePoints.of((0xD700, 0xE100)).ranges == ((0xD700, 0xD800), (0xE000, 0xE100))
    assert CodePoints.of((0xD800, 0xE000)) == CodePoints()
    assert (~CodePoints()).ranges == ((0, 0xD800), (0xE000, END))
