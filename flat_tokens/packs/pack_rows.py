"""Packs as the rows of a Loader, and the table of encoded tokens that every way of reading packs fills.

A sequence, or the part of one that is cut, begins with a start flag in a row, whatever the stored stream has there: so
what belongs together in a pack follows from the flags and the length alone, as in any other row.
"""

from __future__ import annotations

import numpy as np

from flat_tokens.errors import CONVERT_AGAIN, damaged
from flat_tokens.loading.segments import Int32
from flat_tokens.packs.packing_plan import Pieces, Plan
from flat_tokens.rows.row_source import ChunkReader, Int64, TokenRanges, Uint32, put_pieces
from flat_tokens.rows.row_window import RowWindow


class PackRows:
    """A plan's packs as rows; see RowSource."""

    is_padded = True
    reads_starts = True

    def __init__(self, plan: Plan, length: int, padding_id: int, kind: str, is_whole: bool) -> None:
        self.kind = kind
        self.row_count = plan.pack_count
        self.length = length
        self._plan = plan
        self._padding_id = padding_id
        self._is_whole = is_whole  # no sequence is cut, so each range begins with a start

    def fill(self, rows: Int64, window: RowWindow, chunks: ChunkReader) -> None:
        """See RowSource.fill."""
        assert window.lengths is not None
        table = window.table()
        table[: len(rows)] = self._padding_id << 1
        real = np.flatnonzero(rows < self.row_count)
        pieces = self._plan.pieces(rows[real])
        order = np.argsort(pieces.starts)
        places = np.repeat(real, pieces.counts)
        columns, lengths = layout_of(pieces)
        put_pieces(
            chunks.pieces(pieces.starts[order], pieces.stops[order]), table, places[order], columns[order]
        )
        self.mark_starts(table, places, columns, pieces, chunks.tokens.name)
        window.lengths[: len(rows)] = 0
        window.lengths[real] = lengths

    def token_ranges(self, rows: Int64) -> TokenRanges:
        """See RowSource.token_ranges."""
        real = np.flatnonzero(rows < self.row_count)
        pieces = self._plan.pieces(rows[real])
        columns, _ = layout_of(pieces)
        return TokenRanges(np.repeat(real, pieces.counts), columns - 1, pieces.starts, pieces.stops)

    def mark_starts(self, table: Uint32, places: Int64, columns: Int64, pieces: Pieces, name: str) -> None:
        """Put a start flag in front of each piece; DatasetError where one must be and is not."""
        if self._is_whole and not (table[places, columns] & 1).all():
            at = int(pieces.starts[np.flatnonzero(~table[places, columns] & 1)[0]])
            raise damaged(f"{name}[{at}]", "must start a sequence, as seq_starts lists it", CONVERT_AGAIN)
        table[places, columns] |= 1


def layout_of(pieces: Pieces) -> tuple[Int64, Int32]:
    """The column of a table, whose first is the token in front of the row, where each piece begins; and the tokens of
    each pack, int32[packs]."""
    ends = np.cumsum(pieces.stops - pieces.starts)
    last = np.cumsum(pieces.counts)
    before = np.concatenate([[0], ends])
    pack_begins = before[last - pieces.counts]
    columns = before[:-1] - np.repeat(pack_begins, pieces.counts) + 1
    return columns, (before[last] - pack_begins).astype(np.int32)
