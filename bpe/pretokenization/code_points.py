"""Sets of Unicode scalar values, as sorted ranges, and the classes that sets distinguish."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

END = 0x110000
_SURROGATES = (0xD800, 0xE000)


@dataclass(frozen=True)
class CodePoints:
    """Half-open ranges: ascending, non-empty, not adjacent, without surrogates.

    CodePoints.of("ab", (0x30, 0x3A)).ranges -> ((48, 58), (97, 99))
    """

    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(*parts: str | tuple[int, int]) -> CodePoints:
        """Return the characters of the texts and the code points of the half-open ranges."""
        ranges = [part for part in parts if isinstance(part, tuple)]
        ranges += [(ord(c), ord(c) + 1) for part in parts if isinstance(part, str) for c in part]
        return CodePoints(_joined(ranges))

    @staticmethod
    def union(sets: Iterable[CodePoints]) -> CodePoints:
        return CodePoints(_joined([span for each in sets for span in each.ranges]))

    def __or__(self, other: CodePoints) -> CodePoints:
        return CodePoints.union((self, other))

    def __and__(self, other: CodePoints) -> CodePoints:
        common: list[tuple[int, int]] = []
        left, right = iter(self.ranges), iter(other.ranges)
        mine, theirs = next(left, None), next(right, None)
        while mine and theirs:
            start, stop = max(mine[0], theirs[0]), min(mine[1], theirs[1])
            if start < stop:
                common.append((start, stop))
            if mine[1] < theirs[1]:
                mine = next(left, None)
            else:
                theirs = next(right, None)
        return CodePoints(tuple(common))

    def __sub__(self, other: CodePoints) -> CodePoints:
        return self & ~other

    def __invert__(self) -> CodePoints:
        edges = [0, *(edge for span in self.ranges for edge in span), END]
        spans = zip(edges[::2], edges[1::2], strict=True)
        return CodePoints(_without_surrogates([span for span in spans if span[0] < span[1]]))

    def __contains__(self, code_point: int) -> bool:
        index = bisect_right(self.ranges, (code_point, END))
        return index > 0 and code_point < self.ranges[index - 1][1]

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __len__(self) -> int:
        return sum(stop - start for start, stop in self.ranges)


def _joined(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Merge ranges into the form of `CodePoints.ranges`."""
    joined: list[tuple[int, int]] = []
    last_stop = -1
    for start, stop in sorted(ranges):
        if start > last_stop:
            if start < stop:
                joined.append((start, stop))
                last_stop = stop
        elif stop > last_stop:
            joined[-1] = (joined[-1][0], stop)
            last_stop = stop
    return _without_surrogates(joined)


def _without_surrogates(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Remove surrogates from ranges that otherwise have the form of `CodePoints.ranges`."""
    first, last = _SURROGATES
    begin, end = bisect_left(ranges, first, key=_stop), bisect_left(ranges, (last, last))
    halves = (((start, min(stop, first)), (max(start, last), stop)) for start, stop in ranges[begin:end])
    ranges[begin:end] = [(start, stop) for pair in halves for start, stop in pair if start < stop]
    return tuple(ranges)


def _stop(span: tuple[int, int]) -> int:
    return span[1]


def told_apart_by(sets: Iterable[CodePoints]) -> tuple[CodePoints, ...]:
    """Return a partition of the scalar values, as coarse as possible, such that every set is a union of classes."""
    distinct = list(dict.fromkeys(sets))
    borders: dict[int, int] = {}  # code point -> mask of the sets that begin or end there
    for number, points in enumerate([~CodePoints(), *distinct]):
        for edge in (edge for span in points.ranges for edge in span):
            borders[edge] = borders.get(edge, 0) ^ 1 << number
    ranges: dict[int, list[tuple[int, int]]] = {}
    member_of = 0
    edges = sorted(borders)
    for start, stop in zip(edges, [*edges[1:], END], strict=True):
        member_of ^= borders[start]
        if member_of & 1 and start < stop:
            ranges.setdefault(member_of, []).append((start, stop))
    return tuple(CodePoints.of(*spans) for spans in ranges.values())
