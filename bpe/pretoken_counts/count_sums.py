"""Sums of counts, exact: they stay below 2^63, so that nothing that adds counts up in 64 bits goes wrong in silence.

numpy's sums wrap without a word. Counts and their sums are checked where they are read and put together; what also
multiplies them by lengths (merging, reports) checks that product.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadCounts

LIMIT: Final = 1 << 63
_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_AT_ONCE: Final = 1 << 20  # fewer than 2^31 halves of 32 bits have an exact sum


def exact_sum(counts: NDArray[np.uint64]) -> int:
    """The sum of uint64[n], however large: [2**63, 2**63] -> 2**64."""
    total = 0
    for first in range(0, len(counts), _AT_ONCE):
        part = counts[first : first + _AT_ONCE]
        total += (int((part >> _HALF).sum()) << 32) + int((part & _LOW).sum())
    return total


def weighted_bytes(ends: NDArray[np.uint64], counts: NDArray[np.uint64]) -> int:
    """The bytes of all occurrences, counts times lengths, however many: ends [1, 3], counts [2, 5] -> 12."""
    total, start = 0, np.uint64(0)
    for first in range(0, len(ends), _AT_ONCE):
        part_ends, part = ends[first : first + _AT_ONCE], counts[first : first + _AT_ONCE]
        lengths = np.diff(part_ends, prepend=start)
        start = part_ends[-1]
        if float(lengths.astype(np.float64) @ part.astype(np.float64)) < 2.0**62:
            total += int((lengths * part).sum())
        else:
            total += sum(map(int.__mul__, lengths.tolist(), part.tolist()))
    return total


def check_total(total: int, where: str) -> None:
    """Raise BadCounts for a sum of counts of 2^63 or more; where: what it is the sum of."""
    if total >= LIMIT:
        raise _too_large(f"{where}: sum of the counts", total)


def check_weighted(ends: NDArray[np.uint64], counts: NDArray[np.uint64]) -> None:
    """Raise BadCounts for pretokens of 2^63 bytes or more, repeated ones each time."""
    if (total := weighted_bytes(ends, counts)) >= LIMIT:
        raise _too_large("pretokens: bytes (counts times lengths)", total)


def _too_large(what: str, total: int) -> BadCounts:
    return BadCounts(
        f"{what} must be below 2^63 (got {total:,}). Remove a counts file that was added twice, or count again."
    )
