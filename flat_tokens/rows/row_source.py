"""From row numbers to rows in a window: each zarr chunk is read once, whatever the order of the rows.

Packed: row r is the tokens [r * length, (r + 1) * length) of the stream, and the one in front of them. Neighbouring
rows, those of a block, are put in their place as one stretch, and zarr chunks that lie inside it decoded straight into
it. The token in front of a stretch that begins where a zarr chunk does is the last of the zarr chunk before, which
would have to be decoded for it: our writer stores it so that it can be read by itself. From files of others last tokens
are remembered, so that the decoding happens for half of the blocks in the first epoch and for none later.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from flat_tokens.reader import FlatTokensArray
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.zstd_frames import Took

MOST_LAST_TOKENS = 2**22  # zarr chunks whose last token is remembered: 32 MiB at most

Int64 = npt.NDArray[np.int64]
Uint32 = npt.NDArray[np.uint32]


class StretchWindow(Protocol):
    """Where packed rows are put: RowWindow, or NarrowWindow where ids are small. firsts: int64[capacity], where each
    row begins. put: brings encoded tokens to their places and tells the largest, which the caller compares."""

    firsts: Int64

    def room(self, at: int, count: int) -> Uint32 | None: ...

    def put(self, at: int, encoded: Uint32) -> int: ...

    def put_in_front(self, at: int, last_token: int) -> None: ...

    def is_start(self, at: int) -> bool: ...


class RowSource(Protocol):
    """Numbered rows of one length. kind: tells those of other rules apart; row_count: how many;
    is_padded: whether they may be shorter than that."""

    kind: str
    row_count: int
    length: int
    is_padded: bool

    def fill(self, rows: Int64, window: StretchWindow, chunks: ChunkReader) -> None:
        """Put row rows[i] into window place i; a RowWindow where rows may be shorter. Only `window` and `chunks` are
        written."""
        ...


class ChunkReader:
    """The zarr chunks of the tokens, for one thread: its scratch memory is used again for each. is_brief: a zarr chunk
    of which only the front is asked for need not be compared with its checksum until it is asked for again."""

    def __init__(self, tokens: Elements) -> None:
        self.tokens = tokens
        self.is_brief = False
        self.chunk_tokens = tokens.chunk_elements
        self.decodes = tokens.is_decoded  # into the memory that `load` is given
        self._scratch = None if tokens.is_mapped else np.empty(tokens.chunk_elements, dtype=tokens.dtype)
        chunk_count = -(-len(tokens) // tokens.chunk_elements)
        self._last = np.full(chunk_count if chunk_count <= MOST_LAST_TOKENS else 0, -1, dtype=np.int64)

    @property
    def scratch(self) -> Uint32 | None:
        """The memory that `load` decodes to."""
        return self._scratch if self.decodes else None

    def load(
        self,
        index: int,
        into: Uint32 | None = None,
        stop: int | None = None,
        is_checked: bool = True,
        took: Took | None = None,
    ) -> Uint32:
        """The encoded tokens of a zarr chunk, or at least those in front of `stop`. into: uint32[chunk_tokens] that
        they may be decoded to; without it they are valid until the next call. is_checked: False for those who compare
        what they use with `tokens.largest`. took(tokens): may be called with how many of the first
        ones are in `scratch`."""
        scratch = self._scratch if into is None else into
        values: Uint32 = self.tokens.load_chunk(index, scratch, stop, is_checked, self.is_brief, took)
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


class PackedRows:
    """Rows of the packed stream; the tail that fills no row is left out."""

    kind = "packed"
    is_padded = False

    def __init__(self, array: FlatTokensArray, length: int) -> None:
        self.length = length
        self.row_count = array.row_count(length)

    def token_ranges(self, rows: Int64) -> tuple[Int64, Int64]:
        """The positions [start, stop) of the tokens of some rows."""
        return rows * self.length, (rows + 1) * self.length

    def fill(self, rows: Int64, window: StretchWindow, chunks: ChunkReader) -> None:
        """See RowSource.fill."""
        order = np.argsort(rows)
        rows = rows[order]
        is_new = np.diff(rows, prepend=-2) != 1  # a stretch of neighbouring rows begins
        places = np.arange(len(rows)) * self.length + np.cumsum(is_new)  # each with a token in front
        window.firsts[order] = places
        begins = np.flatnonzero(is_new)
        starts = rows[begins] * self.length
        stops = (rows[np.append(begins[1:], len(rows)) - 1] + 1) * self.length
        _copy_stretches(starts, stops, places[begins], window, chunks)


class _Put:
    """put(count) brings what is wanted of the first `count` tokens of a zarr chunk into a window, as far as it is not
    there. pieces: (low, high, place), rising. largest: of the tokens that were put."""

    def __init__(
        self, window: StretchWindow, pieces: list[tuple[int, int, int]], values: Uint32 | None
    ) -> None:
        self.values = values
        self.largest = 0
        self._window = window
        self._pieces = pieces
        self._next = 0
        self._done = 0

    def __call__(self, count: int) -> None:
        assert self.values is not None
        while self._next < len(self._pieces):
            low, high, place = self._pieces[self._next]
            start, stop = max(low, self._done), min(high, count)
            if start < stop:
                largest = self._window.put(place + start - low, self.values[start:stop])
                self.largest = max(self.largest, largest)
            if high > count:
                break
            self._next += 1
        self._done = count


def _copy_stretches(
    starts: Int64, stops: Int64, places: Int64, window: StretchWindow, chunks: ChunkReader
) -> None:
    """Put the tokens [starts[i], stops[i]), rising stretches, to the window's places from places[i] on, and the one in
    front to its place unless the stretch begins with a start."""
    chunk = chunks.chunk_tokens
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
            room = None
            if stop - first == 1 and high[first] - low[first] == chunk and chunks.decodes:
                room = window.room(at, chunk)
            if room is not None:
                chunks.load(index, room)
                continue
            pieces = list(zip(low[first:stop], high[first:stop], to[first:stop], strict=True))
            put = _Put(window, pieces, chunks.scratch)
            took = None if chunks.scratch is None else put
            put.values = chunks.load(index, None, high[stop - 1], is_checked=False, took=took)
            put(len(put.values))
            if put.largest > chunks.tokens.largest:
                chunks.load(index)  # compares, and says where
        for at, index in zip(targets[is_in_front].tolist(), indexes[is_in_front].tolist(), strict=True):
            if not window.is_start(at + 1):
                window.put_in_front(at, chunks.last_token(index))
