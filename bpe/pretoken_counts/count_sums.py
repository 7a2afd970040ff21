"""Exact sums of counts, which must stay below 2^63 so that 64-bit sums cannot overflow.

numpy's sums overflow silently. Counts and their sums are checked when they are read and merged. Code that multiplies
counts by lengths (merging, reports) also checks the products.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from bpe.errors import BadCounts

LIMIT: Final = 1 << 63
_SAFE: Final = 2.0**62  # a float sum below it proves that the sum of integers does not overflow
_AT_ONCE: Final = 1 << 20  # lengths in memory


def exact_sum(counts: NDArray[np.uint64]) -> int:
    """Return the sum of uint64[n] without overflow: [2**63, 2**63] -> 2**64."""
    return int(counts.sum()) if float(counts.sum(dtype=np.float64)) < _SAFE else sum(counts.tolist())


def weighted_bytes(ends: NDArray[np.uint64], counts: NDArray[np.uint64]) -> int:
    """Return the sum of counts times lengths without overflow: ends [1, 3], counts [2, 5] -> 12."""
    total, start = 0, np.uint64(0)
    for first in range(0, len(ends), _AT_ONCE):
        part = counts[first : first + _AT_ONCE]
        lengths = np.diff(ends[first : first + _AT_ONCE], prepend=start)
        start = ends[first + len(part) - 1]
        if float(lengths.astype(np.float64) @ part.astype(np.float64)) < _SAFE:
            total += int((lengths * part).sum())
        else:
            total += sum(map(int.__mul__, lengths.tolist(), part.tolist()))
    return total


def check_total(total: int, where: str) -> None:
    """Raise BadCounts if a sum of counts is 2^63 or more. where: name of the counts."""
    if total >= LIMIT:
        raise _too_large(f"{where}: sum of the counts", total)


def check_weighted(ends: NDArray[np.uint64], counts: NDArray[np.uint64]) -> None:
    """Raise BadCounts if all occurrences of the pretokens have 2^63 bytes or more."""
    if (total := weighted_bytes(ends, counts)) >= LIMIT:
        raise _too_large("pretokens: bytes (counts times lengths)", total)


def _too_large(what: str, total: int) -> BadCounts:
    return BadCounts(
        f"{what} must be below 2^63 (got {total:,}). Remove a counts file that was added twice, or count again."
    )
