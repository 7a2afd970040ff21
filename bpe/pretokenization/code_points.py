"""Sets of Unicode scalar values, as sorted ranges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

END = 0x110000
_SURROGATES = (0xD800, 0xE000)


@dataclass(frozen=True)
class CodePoints:
    """Half-open ranges, ascending, not empty, no two of them touching; surrogates are in none.

    CodePoints.of("ab", (0x30, 0x3A)).ranges -> ((48, 58), (97, 99))
    """

    ranges: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(*parts: str | tuple[int, int]) -> CodePoints:
        """The characters of the texts and the code points of the half-open ranges."""
        ranges = [part for part in parts if isinstance(part, tuple)]
        ranges += [(ord(c), ord(c) + 1) for part in parts if isinstance(part, str) for c in part]
        return CodePoints(_joined(ranges))

    @staticmethod
    def union(sets: Iterable[CodePoints]) -> CodePoints:
        return CodePoints(_joined([span for each in sets for span in each.ranges]))

    def __or__(self, other: CodePoints) -> CodePoints:
        return CodePoints.union((self, other))

    def __and__(self, other: CodePoints) -> CodePoints:
        return ~(~self | ~other)

    def __sub__(self, other: CodePoints) -> CodePoints:
        return ~(~self | other)

    def __invert__(self) -> CodePoints:
        edges = [0, *(edge for span in self.ranges for edge in span), END]
        return CodePoints(_joined(zip(edges[::2], edges[1::2], strict=True)))

    def __contains__(self, code_point: int) -> bool:
        return any(start <= code_point < stop for start, stop in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __len__(self) -> int:
        return sum(stop - start for start, stop in self.ranges)


def _joined(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The code points in any of the ranges but surrogates, in the form of `CodePoints.ranges`."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if start >= stop:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    first, last = _SURROGATES
    halves = (half for start, stop in joined for half in ((start, min(stop, first)), (max(start, last), stop)))
    return tuple((start, stop) for start, stop in halves if start < stop)
