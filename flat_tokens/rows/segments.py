"""Segments of flattened rows: which tokens attend to each other.

A segment is a sequence, or the part of one that is in a row. It begins at a row's first token and at each start flag.
The padding of a row is a separate segment. Segment IDs, positions and masks all follow from `segment_bounds`, so they
agree for rows and packs in every adapter.
"""

from __future__ import annotations

import numpy as np

from flat_tokens.errors import ArgumentError
from flat_tokens.format import Bools, Int32


def segment_bounds(is_start: Bools, lengths: Int32 | None) -> Int32:
    """Where the segments of the flattened rows begin, and the end of the last: int32[segments + 1] (cu_seqlens).

    is_start: bool[rows, length].
    lengths: int32[rows], tokens before the padding; None without padding.

    [[1, 0, 1, 0]], [3] -> [0, 2, 3, 4]. Raise ArgumentError for 2^31 tokens or more.
    """
    if is_start.size >= 2**31:
        raise ArgumentError(
            f"cu_seqlens: int32 allows less than 2^31 tokens per batch (got {is_start.size}). Use fewer rows."
        )
    begins = is_start.copy()
    begins[:, :1] = True
    if lengths is not None:
        rows = np.flatnonzero(lengths < begins.shape[1])
        begins[rows, lengths[rows]] = True
    return np.append(np.flatnonzero(begins), is_start.size).astype(np.int32)


def segment_ids(bounds: Int32, length: int, lengths: Int32 | None) -> Int32:
    """1 for the tokens of the first segment of each row, 2 for the second and so on, 0 at padding: int32[rows, length].

    [0, 2, 3, 4], 4, [3] -> [[1, 1, 2, 0]].
    """
    rows, columns = np.divmod(bounds[:-1], np.int32(length))
    numbers = np.arange(1, len(rows) + 1, dtype=np.int32)
    numbers -= np.flatnonzero(columns == 0).astype(np.int32)[rows]
    numbers[_are_padding(rows, columns, lengths)] = 0
    found: Int32 = np.repeat(numbers, np.diff(bounds)).reshape(-1, length)
    return found


def positions(bounds: Int32, length: int, lengths: Int32 | None) -> Int32:
    """The index of each token in its segment: int32[rows, length]. Padding continues the count.

    [0, 2, 3, 4], 4, [3] -> [[0, 1, 0, 1]].
    """
    begins = bounds[:-1].copy()
    rows, columns = np.divmod(begins, np.int32(length))
    after = np.flatnonzero(_are_padding(rows, columns, lengths) & (columns > 0))
    begins[after] = begins[after - 1]
    found = np.arange(bounds[-1], dtype=np.int32)
    found -= np.repeat(begins, np.diff(bounds))
    return found.reshape(-1, length)


def block_causal_mask(ids: Int32) -> Bools:
    """Segment IDs int32[..., n] -> bool[..., n, n]: true where query i and key j <= i share a segment.

    At padding, ID 0, only i = j is true, so that no row of a softmax is empty. Cost: one byte per element.
    """
    n = ids.shape[-1]
    same: Bools = ids[..., :, None] == ids[..., None, :]
    same &= (ids != 0)[..., None, :]
    same &= np.tri(n, dtype=np.bool_)
    same |= np.eye(n, dtype=np.bool_)
    return same


def _are_padding(rows: Int32, columns: Int32, lengths: Int32 | None) -> Bools:
    """Which segments, by their first row and column, are padding."""
    found: Bools = np.zeros(len(rows), dtype=np.bool_) if lengths is None else columns == lengths[rows]
    return found
