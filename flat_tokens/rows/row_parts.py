"""The sequences in the rows of a batch, with their sources."""

from __future__ import annotations

import numpy as np

from flat_tokens.format import Int64
from flat_tokens.reader import FlatTokensArray
from flat_tokens.sources import RowPart
from flat_tokens.storage.elements import Elements


def parts_of_rows(
    array: FlatTokensArray, row_count: int, ranges: tuple[Int64, Int64, Int64, Int64]
) -> list[list[RowPart]]:
    """Return the sequences in each of some rows, in order. ranges: as for `masks.put_trained`."""
    rows, columns, starts, stops = ranges
    firsts, lasts = sequences_at(array.seq_starts, starts), sequences_at(array.seq_starts, stops - 1)
    begins = array.seq_starts.read_ranges(list(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True)))
    sequences = [
        np.arange(first, last + 1) for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
    ]
    sources = iter(array.sources_of(np.concatenate([np.empty(0, dtype=np.int64), *sequences])))
    found: list[list[RowPart]] = [[] for _ in range(row_count)]
    for at, (row, column, start) in enumerate(
        zip(rows.tolist(), columns.tolist(), starts.tolist(), strict=True)
    ):
        for sequence, begin in zip(sequences[at].tolist(), begins[at].tolist(), strict=True):
            found[row].append(RowPart(column + max(begin - start, 0), sequence, next(sources)))
    return found


def sequences_at(seq_starts: Elements, tokens: Int64) -> Int64:
    """Return the sequences that contain some tokens.

    A binary search for all tokens at once, over the chunks of seq_starts and then within one. On a store the requests
    of each step are sent together.
    """
    chunk = seq_starts.chunk_elements
    low = np.zeros(len(tokens), dtype=np.int64)
    high = np.full(len(tokens), -(-len(seq_starts) // chunk), dtype=np.int64)  # the chunk is in [low, high)
    while len(tokens) and int((high - low).max()) > 1:
        middle = (low + high) // 2
        wanted, to = np.unique(middle, return_inverse=True)
        firsts = seq_starts.read_ranges([(index * chunk, index * chunk + 1) for index in wanted.tolist()])
        is_at_most = np.concatenate(firsts).astype(np.int64)[to] <= tokens
        low, high = np.where(is_at_most, middle, low), np.where(is_at_most, high, np.maximum(middle, low + 1))
    found = np.empty(len(tokens), dtype=np.int64)
    for index in np.unique(low).tolist():
        here, first = low == index, index * chunk
        entries = seq_starts.read(first, min(first + chunk, len(seq_starts))).astype(np.int64)
        found[here] = first + np.searchsorted(entries, tokens[here], side="right") - 1
    return found
