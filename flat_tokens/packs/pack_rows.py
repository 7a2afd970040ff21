"""The packs of a plan as numbered rows; see flat_tokens/rows/reader.py.

A sequence, or the part of one that is cut, begins with a start flag in a pack, whatever the stored stream has there.
The segments of a pack thus follow from its flags and its length, as in any other row.
"""

from __future__ import annotations

import numpy as np

from flat_tokens.format import Int64
from flat_tokens.packs.plan import Plan
from flat_tokens.rows.reader import TokenRanges


class PackRows:
    """See RowSource. is_whole: whether no sequence is cut, so that each range must begin a sequence."""

    is_padded = reads_starts = is_pack = True

    def __init__(self, plan: Plan, length: int, padding_id: int, kind: str, is_whole: bool) -> None:
        self.kind = kind
        self.row_count = plan.pack_count
        self.length = length
        self.padding_id = padding_id
        self.is_whole = is_whole
        self._plan = plan

    def token_ranges(self, rows: Int64) -> TokenRanges:
        """See RowSource.token_ranges."""
        real = np.flatnonzero(rows < self.row_count)
        starts, stops, counts = self._plan.pieces(rows[real])
        ends = np.cumsum(stops - starts)
        before = np.concatenate([[0], ends])
        firsts = np.cumsum(counts) - counts  # the first piece of each pack
        columns = before[:-1] - np.repeat(before[firsts], counts)
        return TokenRanges(np.repeat(real, counts), columns, starts, stops)
