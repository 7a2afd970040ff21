"""Sets of code points equal Python sets without surrogates."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bpe.pretokenization.code_points import END, CodePoints

SURROGATES = set(range(0xD800, 0xE000))
EDGES = [0x7F, 0x80, 0xD7FE, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xE001, 0xFFFF, 0x10000, *range(40)]
RANGES = st.lists(
    st.tuples(st.sampled_from(EDGES), st.sampled_from(EDGES)).map(sorted).map(tuple), max_size=5
)


def members_of(ranges: list[tuple[int, int]]) -> set[int]:
    return {point for start, stop in ranges for point in range(start, stop)}


def check(found: CodePoints, expected: set[int]) -> None:
    edges = [edge for span in found.ranges for edge in span]
    assert all(before < after for before, after in pairwise(edges))
    assert members_of([*found.ranges]) == expected
    assert (len(found), bool(found)) == (len(expected), bool(expected))
    assert all((point in found) == (point in expected) for point in EDGES)


@given(RANGES, RANGES)
def test_operations_equal_set_operations(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    a, b = CodePoints.of(*left), CodePoints.of(*right)
    a_members, b_members = members_of(left) - SURROGATES, members_of(right) - SURROGATES
    check(a, a_members)
    check(a | b, a_members | b_members)
    check(a & b, a_members & b_members)
    check(a - b, a_members - b_members)
    assert ~~a == a
    assert not a & ~a
    assert len(a) + len(~a) == END - len(SURROGATES)


def test_texts_and_ranges_make_a_set() -> None:
    assert CodePoints.of("ab", (0x30, 0x3A)).ranges == ((48, 58), (97, 99))
    assert CodePoints.of("ba", "c", (99, 99), (98, 101)).ranges == ((97, 101),)
    assert (~CodePoints()).ranges == ((0, 0xD800), (0xE000, END))
