"""From row numbers to rows in a window: each zarr chunk is read once, whatever the order of the rows.

Packed: row r is the tokens [r * length, (r + 1) * length) of the stream, and the one in front of them. Neighbouring
rows, those of a block, are put in their place as one stretch, and zarr chunks that lie inside it decoded straight into
it. The token in front of a stretch that begins where a zarr chunk does is the last of the zarr chunk before, which
would have to be decoded for it: our writer stores it so that it can be read by itself. From files of others last tokens
are remembered, so that the decoding happens for half of the blocks in the first epoch and for none later.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.row_window import RowWindow
from flat_tokens.storage.elements import Elements

MOST_LAST_TOKENS = 2**22  # zarr chunks whose last token is remembered: 32 MiB at most

Int64 = npt.NDArray[np.int64]
Uint32 = npt.NDArray[np.uint32]


class TokenRanges(NamedTuple):
    """Tokens [starts[i], stops[i]) lie in row places[i] of some, from columns[i] on; in the order of their columns."""

    places: Int64
    columns: Int64
    starts: Int64
    stops: Int64


class RowSource(Protocol):
    """Numbered rows of one length. kind: tells those of other rules apart; row_count: how many. is_padded: whether rows
    may be shorter than that; numbers of row_count and above are rows of padding alone then. reads_starts: whether
    token_ranges reads seq_starts."""

    kind: str
    reads_starts: bool
    row_count: int
    length: int
    is_padded: bool

    def fill(self, rows: Int64, window: RowWindow, chunks: ChunkReader) -> None:
        """Put row rows[i] into window place i. Only `window` and `chunks` are written."""
        ...

    def token_ranges(self, rows: Int64) -> TokenRanges:
        """Which tokens are in rows[i], none in a row of padding."""
        ...


_SCRATCH = threading.local()


def _scratch_of(tokens: Elements) -> Uint32:
    """Memory for one zarr chunk, that all readers of a thread share."""
    kept: dict[int, Uint32] = _SCRATCH.__dict__.setdefault("kept", {})
    if tokens.chunk_elements not in kept:
        kept.clear()
        kept[tokens.chunk_elements] = np.empty(tokens.chunk_elements, dtype=tokens.dtype)
    return kept[tokens.chunk_elements]


class ChunkReader:
    """The zarr chunks of the tokens, for one thread, whose readers share the memory that is decoded to. is_brief:
    where only the front of a zarr chunk is asked for, its checksum need not be compared until the zarr chunk is asked
    for again."""

    def __init__(self, tokens: Elements) -> None:
        self.tokens = tokens
        self.is_brief = False
        self.chunk_tokens = tokens.chunk_elements
        self.decodes = tokens.is_decoded  # into the memory that `load` is given
        chunk_count = -(-len(tokens) // tokens.chunk_elements)
        self._last = np.full(chunk_count if chunk_count <= MOST_LAST_TOKENS else 0, -1, dtype=np.int64)

    def load(
        self,
        index: int,
        into: Uint32 | None = None,
        stop: int | None = None,
        is_checked: bool = True,
    ) -> Uint32:
        """The encoded tokens of a zarr chunk, or at least those in front of `stop`. into: uint32[chunk_tokens] that
        they may be decoded to; without it they are valid until the thread's next call. is_checked: False for those who
        compare what they use with `tokens.largest`."""
        scratch = into
        if into is None and not self.tokens.is_mapped:
            scratch = _scratch_of(self.tokens)
        values: Uint32 = self.tokens.load_chunk(index, scratch, stop, is_checked, self.is_brief)
        first = index * self.chunk_tokens
        if self.tokens.is_mapped and is_checked:
            self.tokens.check(values, first)
        if len(self._last) and len(values) == min(self.chunk_tokens, len(self.tokens) - first):
            self._last[index] = int(values[-1])
        return values

    def last_token(self, index: int) -> int:
        """The last token of a full zarr chunk, encoded. Cost: nothing if it was loaded before, else the reading of its
        file, and its decoding unless our writer made it."""
        known = int(self._last[index]) if len(self._last) else -1
        if known < 0:
            found = self.tokens.last_of_chunk(index)
            known = -1 if found is None else found
        if not 0 <= known <= self.tokens.largest:  # it may have been read by those who compare what they use
            known = int(self.load(index)[-1])
        if len(self._last):
            self._last[index] = known
        return known

    def pieces(self, starts: Int64, stops: Int64) -> Iterator[tuple[int, int, Uint32]]:
        """(i, offset, encoded) for ranges [starts[i], stops[i]) that rise: the part of range i from `offset`
        on that lies in one zarr chunk. Each zarr chunk is read once; `encoded` is valid until the next."""
        chunk = self.chunk_tokens
        with self.tokens.expecting(starts, stops):
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


def put_pieces(
    pieces: Iterable[tuple[int, int, Uint32]], table: Uint32, places: Int64, columns: Int64
) -> None:
    """Put (i, offset, encoded), as ChunkReader.pieces gives them, into row places[i] of a table, from column
    columns[i] + offset on."""
    to_rows, to_columns = places.tolist(), columns.tolist()
    for i, offset, encoded in pieces:
        at = to_columns[i] + offset
        table[to_rows[i], at : at + len(encoded)] = encoded


class PackedRows:
    """Rows of the packed stream. with_tail: whether what is left behind the last full row is a row as well, padded with
    padding_id."""

    reads_starts = False

    def __init__(
        self, array: FlatTokensArray, length: int, with_tail: bool = False, padding_id: int = 0
    ) -> None:
        self.kind = f"packed, the tail padded with {padding_id}" if with_tail else "packed"
        self.length = length
        self.is_padded = with_tail
        self.row_count = array.row_count(length)
        self._stop = self.row_count * length
        self._padding = padding_id << 1
        if with_tail and array.token_count > self._stop:
            self._stop = array.token_count
            self.row_count += 1

    def token_ranges(self, rows: Int64) -> TokenRanges:
        """See RowSource.token_ranges."""
        places = np.flatnonzero(rows < self.row_count)
        starts = rows[places] * self.length
        stops = np.minimum(starts + self.length, self._stop)
        return TokenRanges(places, np.zeros_like(places), starts, stops)

    def fill(self, rows: Int64, window: RowWindow, chunks: ChunkReader) -> None:
        """See RowSource.fill."""
        order = np.argsort(rows)
        rows = rows[order]
        # A stretch of neighbouring rows begins; a row of padding has none in front of it.
        is_new = (np.diff(rows, prepend=-2) != 1) | (rows >= self.row_count)
        places = np.arange(len(rows)) * self.length + np.cumsum(is_new)  # each with a token in front
        window.firsts[order] = places
        begins = np.flatnonzero(is_new)
        starts = rows[begins] * self.length
        stops = (rows[np.append(begins[1:], len(rows)) - 1] + 1) * self.length
        if window.lengths is not None:
            lengths = np.clip(self._stop - rows * self.length, 0, self.length)
            window.lengths[order] = lengths
            for i in np.flatnonzero(lengths < self.length).tolist():
                at = int(places[i]) + (int(lengths[i]) or -1)
                window.tokens[at : places[i] + self.length] = self._padding
            stops = np.minimum(stops, self._stop)
            some = starts < stops
            starts, stops, begins = starts[some], stops[some], begins[some]
        _copy_stretches(starts, stops, places[begins], window, chunks)


def _copy_stretches(
    starts: Int64, stops: Int64, places: Int64, window: RowWindow, chunks: ChunkReader
) -> None:
    """Put the tokens [starts[i], stops[i]), rising stretches, to the window's places from places[i] on, and the one in
    front to its place unless the stretch begins with a start."""
    chunk, tokens = chunks.chunk_tokens, window.tokens
    begins = np.maximum(starts - 1, 0)
    first_chunks = begins // chunk
    counts = (stops - 1) // chunk - first_chunks + 1
    of = np.repeat(np.arange(len(starts)), counts)  # a stretch has a piece in each zarr chunk
    indexes = first_chunks[of] + np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    lows = np.maximum(begins[of], indexes * chunk)
    highs = np.minimum(stops[of], (indexes + 1) * chunk)
    targets = places[of] + lows - starts[of]
    is_in_front = highs == starts[of]  # nothing but the token in front: put off, it may not be needed
    kept = np.flatnonzero(~is_in_front)
    borders = np.flatnonzero(np.diff(indexes[kept], prepend=-1, append=-1)).tolist()
    numbers, to = indexes[kept].tolist(), targets[kept].tolist()
    low, high = (lows[kept] % chunk).tolist(), (highs[kept] - indexes[kept] * chunk).tolist()
    with chunks.tokens.expecting(begins, stops):
        for first, stop in itertools.pairwise(borders):
            index, at = numbers[first], to[first]
            if stop - first == 1 and high[first] - low[first] == chunk and chunks.decodes:
                chunks.load(index, tokens[at : at + chunk])
                continue
            values = chunks.load(index, None, high[stop - 1], is_checked=False)
            largest = 0
            for i in range(first, stop):
                piece = values[low[i] : high[i]]
                tokens[to[i] : to[i] + len(piece)] = piece
                largest = max(largest, int(np.maximum.reduce(piece)))
            if largest > chunks.tokens.largest:
                chunks.load(index)  # compares, and says where
        for at, index in zip(targets[is_in_front].tolist(), indexes[is_in_front].tolist(), strict=True):
            if not tokens[at + 1] & 1:
                tokens[at] = chunks.last_token(index)
