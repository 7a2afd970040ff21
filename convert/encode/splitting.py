"""The split of a document: by the hash of its text, or by its source.

A document belongs to validation if XXH64 of its bytes, seeded, is below fraction * 2^64. The rule depends on the
document alone: it is stable when other documents change, exact copies stay together, and a larger fraction only adds
documents to validation. Documents of --validation files always belong to validation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def hash_threshold(fraction: float) -> int:
    """Return the integer that hashes of validation documents are below: 0.5 -> 2^63. Exact."""
    return int(fraction * 2.0**64)


def is_validation(hashes: NDArray[np.uint64], threshold: int) -> NDArray[np.bool_]:
    """Return bool[documents], True for validation. threshold: 0 to 2^64, from `hash_threshold`."""
    if threshold == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    return hashes <= np.uint64(threshold - 1)  # 2^64 itself would overflow
