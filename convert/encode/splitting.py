"""Which split a document belongs to.

By hash: a document is validation if XXH64 of its bytes, seeded, is below fraction * 2^64. The rule looks at the
document alone, so it does not change when other documents come or go, exact copies stay together, and a greater
fraction only adds to the validation split. By file: the documents of --validation files are validation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def hash_threshold(fraction: float) -> int:
    """A hash below it means validation: 0 to 2^64. Exact, since a double times a power of two is: 0.5 -> 2^63."""
    return int(fraction * 2.0**64)


def is_validation(hashes: NDArray[np.uint64], threshold: int) -> NDArray[np.bool_]:
    """bool[documents], True for validation; threshold from `hash_threshold`."""
    if threshold == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    return hashes <= np.uint64(threshold - 1)  # 2^64 itself would not fit
