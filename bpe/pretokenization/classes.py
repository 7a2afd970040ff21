"""Character classes: code points that belong to the same sets of a pattern."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bpe.pretokenization.code_points import END, CodePoints


@dataclass(frozen=True)
class Classes:
    """A partition of the scalar values. Class n is `sets[n]` and contains the code point `examples[n]`."""

    sets: tuple[CodePoints, ...]

    @property
    def examples(self) -> tuple[int, ...]:
        return tuple(points.ranges[0][0] for points in self.sets)

    def joined(self, members: Iterable[Iterable[int]]) -> Classes:
        """Return the unions of these classes, in order."""
        return Classes(tuple(CodePoints.union(self.sets[number] for number in each) for each in members))


def told_apart_by(sets: Iterable[CodePoints]) -> Classes:
    """Return the coarsest classes such that every set is a union of classes."""
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
    return Classes(tuple(CodePoints.of(*spans) for spans in ranges.values()))
