"""From row numbers to rows in a window: each zarr chunk is read once, whatever the order of the rows.

Packed: row r is the tokens [r * length, (r + 1) * length) of the stream, and the id in front of them. Rows
that lie in one zarr chunk are shifted, narrowed and put in their places all at once, while the decoded zarr
chunk is still in the processor's cache; the others piece by piece. The id in front of a zarr chunk's first
row is the last of the zarr chunk before, which would have to be decoded for it: last ids are remembered, so
that happens for half of the blocks in the first epoch and for none later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flat_tokens.elements import Elements
from flat_tokens.reader import FlatTokensArray
from flat_tokens.row_window import RowWindow

SLICE_TOKENS = 2**16  # converted at once: 256 KiB, twice, fit the second-level cache
MOST_LAST_IDS = 2**22  # zarr chunks whose last id is remembered: 32 MiB at most

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
        self._slices: dict[str, npt.NDArray[Any]] = {}
        chunk_count = -(-len(tokens) // tokens.chunk_elements)
        self._last = np.full(chunk_count if chunk_count <= MOST_LAST_IDS else 0, -1, dtype=np.int64)

    def load(self, index: int) -> npt.NDArray[np.uint32]:
        """The encoded tokens of a zarr chunk, valid until the next call."""
        values = self.tokens.load_chunk(index, self._scratch)
        if self.tokens.is_mapped:
            self.tokens.check(values, index * self.chunk_tokens)
        if len(self._last):
            self._last[index] = int(values[-1])
        return values

    def last_id(self, index: int) -> int:
        """The last id of a zarr chunk. Cost: nothing if it was loaded before, else its decoding."""
        known = int(self._last[index]) if len(self._last) else -1
        return (known if known >= 0 else int(self.load(index)[-1])) >> 1

    def slice_of(self, name: str, count: int, dtype: type[Any]) -> npt.NDArray[Any]:
        """Scratch memory of `count` elements, one per name; its content is lost at the next call."""
        kept = self._slices.get(name)
        if kept is None or len(kept) < count:
            kept = self._slices[name] = np.empty(count, dtype=dtype)
        return kept[:count]

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
        in_front: list[tuple[int, int]] = []  # (place, zarr chunk whose last id stands in front of the row)
        distinct, firsts = np.unique(indexes[inside], return_index=True)
        bounds = [*firsts.tolist(), len(inside)]
        for number, index in enumerate(distinct.tolist()):
            values = chunks.load(index)
            here = inside[bounds[number] : bounds[number + 1]]
            step = max(1, SLICE_TOKENS // length)
            for low in range(0, len(here), step):
                some = here[low : low + step]
                _put(values, offsets[some], order[some], window, chunks)
            if offsets[here[0]] == 0 and index > 0 and not values[0] & 1:
                in_front.append((int(order[here[0]]), index - 1))
        across = np.flatnonzero(~is_inside)
        if len(across):
            self._fill_pieces(starts[across], order[across], window, chunks)
        for place, index in in_front:
            window.ids[place, 0] = chunks.last_id(index)

    def _fill_pieces(self, starts: Int64, places: Int64, window: RowWindow, chunks: ChunkReader) -> None:
        """Rows that lie in several zarr chunks, with the id in front."""
        length = self.length
        encoded = np.zeros((len(starts), length + 1), dtype=np.uint32)
        begins = np.maximum(starts - 1, 0)
        for i, offset, part in chunks.pieces(begins, starts + length):
            at = offset + int(starts[i] == 0)
            encoded[i, at : at + len(part)] = part
        window.ids[places] = encoded >> np.uint32(1)
        window.starts[places] = np.packbits(encoded[:, 1:] & np.uint32(1) != 0, axis=1)


def _put(
    values: npt.NDArray[np.uint32], offsets: Int64, places: Int64, window: RowWindow, chunks: ChunkReader
) -> None:
    """Convert the rows at some rising offsets of a zarr chunk and put them in their places."""
    count, length = len(offsets), window.length
    first = int(offsets[0])
    if int(offsets[-1]) - first == (count - 1) * length and (count < 2 or int(offsets[1]) - first == length):
        encoded = values[first : first + count * length].reshape(count, length)
    else:
        every = np.lib.stride_tricks.as_strided(
            values, (len(values) - length + 1, length), (values.itemsize, values.itemsize), writeable=False
        )
        encoded = every[offsets]
    shifted = chunks.slice_of("shifted", count * length, np.uint32).reshape(count, length)
    np.right_shift(encoded, np.uint32(1), out=shifted)
    window.ids[places, 1:] = shifted
    window.ids[places, 0] = values[offsets - 1] >> np.uint32(1)  # at offset 0 whatever stands last
    flags = chunks.slice_of("flags", count * length, np.uint8).reshape(count, length)
    np.copyto(flags, encoded, casting="unsafe")
    flags &= np.uint8(1)
    window.starts[places] = (
        np.packbits(flags, axis=1) if length % 8 else np.packbits(flags.reshape(-1)).reshape(count, -1)
    )
