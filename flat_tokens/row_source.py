"""From row numbers to rows in a window: each zarr chunk is read once, whatever the order of the rows.

Packed: row r is the tokens [r * length, (r + 1) * length) of the stream, and the one in front of them. Rows
that lie in one zarr chunk are put in their places all at once, while the decoded zarr chunk is still in the
processor's cache; the others piece by piece. The token in front of a zarr chunk's first row is the last of the
zarr chunk before, which would have to be decoded for it: last tokens are remembered, so that happens for half of
the blocks in the first epoch and for none later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flat_tokens.elements import Elements
from flat_tokens.reader import FlatTokensArray
from flat_tokens.row_window import RowWindow

MOST_LAST_TOKENS = 2**22  # zarr chunks whose last token is remembered: 32 MiB at most

Int64 = npt.NDArray[np.int64]


class RowSource(Protocol):
    """Numbered rows of one length. row_count: how many; is_padded: whether they may be shorter than that."""

    row_count: int
    length: int
    is_padded: bool

    def fill(self, rows: Int64, window: RowWindow, chunks: ChunkReader) -> None:
        """Put row rows[i] into window place i. Only `window` and `chunks` are written."""
        ...


class ChunkReader:
    """The zarr chunks of the tokens, for one thread: its scratch memory is used again for each."""

    def __init__(self, tokens: Elements) -> None:
        self.tokens = tokens
        self.chunk_tokens = tokens.chunk_elements
        self._scratch = None if tokens.is_mapped else np.empty(tokens.chunk_elements, dtype=tokens.dtype)
        chunk_count = -(-len(tokens) // tokens.chunk_elements)
        self._last = np.full(chunk_count if chunk_count <= MOST_LAST_TOKENS else 0, -1, dtype=np.int64)

    def load(self, index: int) -> npt.NDArray[np.uint32]:
        """The encoded tokens of a zarr chunk, valid until the next call."""
        values = self.tokens.load_chunk(index, self._scratch)
        if self.tokens.is_mapped:
            self.tokens.check(values, index * self.chunk_tokens)
        if len(self._last):
            self._last[index] = int(values[-1])
        return values

    def last_token(self, index: int) -> int:
        """The last token of a zarr chunk, encoded. Cost: nothing if it was loaded before, else its decoding."""
        known = int(self._last[index]) if len(self._last) else -1
        return known if known >= 0 else int(self.load(index)[-1])

    def pieces(self, starts: Int64, stops: Int64) -> Iterator[tuple[int, int, npt.NDArray[np.uint32]]]:
        """(i, offset, encoded) for ranges [starts[i], stops[i]) that rise: the part of range i from `offset`
        on that lies in one zarr chunk. Each zarr chunk is read once; `encoded` is valid until the next."""
        chunk = self.chunk_tokens
        first = 0
        while first < len(starts):
            index = int(starts[first]) // chunk
            last = first
            open_ranges = [first]
            while open_ranges:  # zarr chunk by zarr chunk, until no range goes on into the next
                base = index * chunk
                values = self.load(index)
                while last + 1 < len(starts) and starts[last + 1] < base + chunk:
                    last += 1
                    open_ranges.append(last)
                for i in open_ranges:
                    start, stop = int(starts[i]), int(stops[i])
                    low = max(start, base)
                    yield i, low - start, values[low - base : min(stop, base + chunk) - base]
                open_ranges = [i for i in open_ranges if stops[i] > base + chunk]
                index += 1
            first = last + 1


class PackedRows:
    """Rows of the packed stream; the tail that fills no row is left out."""

    is_padded = False

    def __init__(self, array: FlatTokensArray, length: int) -> None:
        self.length = length
        self.row_count = array.row_count(length)

    def fill(self, rows: Int64, window: RowWindow, chunks: ChunkReader) -> None:
        length, chunk = self.length, chunks.chunk_tokens
        order = np.argsort(rows, kind="stable")
        starts = rows[order] * length
        indexes, offsets = np.divmod(starts, chunk)
        is_inside = offsets + length <= chunk
        inside = np.flatnonzero(is_inside)
        in_front: list[tuple[int, int]] = []  # (place, zarr chunk whose last token stands in front of the row)
        distinct, firsts = np.unique(indexes[inside], return_index=True)
        bounds = [*firsts.tolist(), len(inside)]
        for number, index in enumerate(distinct.tolist()):
            values = chunks.load(index)
            here = inside[bounds[number] : bounds[number + 1]]
            if offsets[here[0]] == 0:
                window.encoded[order[here[0]], 1:] = values[:length]
                if index > 0 and not values[0] & 1:
                    in_front.append((int(order[here[0]]), index - 1))
                here = here[1:]
            if len(here):
                every = np.ndarray((len(values) - length, length + 1), np.uint32, values, 0, (4, 4))
                window.encoded[order[here]] = every[offsets[here] - 1]
        across = np.flatnonzero(~is_inside)
        if len(across):
            self._fill_pieces(starts[across], order[across], window, chunks)
        for place, index in in_front:
            window.encoded[place, 0] = chunks.last_token(index)

    def _fill_pieces(self, starts: Int64, places: Int64, window: RowWindow, chunks: ChunkReader) -> None:
        """Rows that lie in several zarr chunks, with the token in front."""
        begins = np.maximum(starts - 1, 0)
        for i, offset, part in chunks.pieces(begins, starts + self.length):
            at = offset + int(starts[i] == 0)
            window.encoded[places[i], at : at + len(part)] = part
