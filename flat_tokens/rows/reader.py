"""Numbered rows of one dataset, read into a table.

A RowSource maps rows to token ranges. RowReader cuts the ranges where zarr chunks end, decodes each zarr chunk once,
and copies every piece to its place, whatever the order of the rows.

The input of a row's first target is the token before it. If that is the last token of another zarr chunk, it is
fetched last and only if needed. Last tokens of zarr chunks are remembered.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import invalid
from flat_tokens.errors import CONVERT_AGAIN, RangeError, damaged
from flat_tokens.format import Bools, Int64, Uint32
from flat_tokens.masks import put_trained
from flat_tokens.order.row_order import counting
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.batch import Batch
from flat_tokens.rows.cut import RowCut, RowTable, windows_of
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.mapped_stream import MappedStream
from flat_tokens.storage.pieces import entered

MAX_LAST_TOKENS = 2**18  # limit for the last tokens that are remembered, 100 bytes each
COPIED_TOKENS = 2**15  # at a time, so that numpy's intermediate copy stays in the cache


class TokenRanges(NamedTuple):
    """Tokens [starts[i], stops[i]) are in row places[i] of a request, from column columns[i] on; int64 each."""

    places: Int64
    columns: Int64
    starts: Int64
    stops: Int64


class RowSource(ABC):
    """Numbered rows of equal length.

    kind: identifies the rules, for states.
    row_count: rows. If is_padded, numbers from row_count on are rows of padding.
    length: tokens per row.
    padding_id: token ID of padding.
    is_padded: whether rows may have fewer tokens.
    reads_starts: whether token_ranges reads seq_starts.
    is_pack: whether each range begins a segment. Otherwise it may continue the token before it.
    is_whole: whether each range begins at a sequence start; for packs.
    """

    kind: str
    row_count: int
    length: int
    padding_id = 0
    is_padded = reads_starts = is_pack = is_whole = False

    @abstractmethod
    def token_ranges(self, rows: Int64) -> TokenRanges:
        """The tokens of some rows, none for a row of padding."""


class PackedRows(RowSource):
    """Rows cut from the token stream: row r has the tokens [r * length, (r + 1) * length).

    with_tail: whether the tokens that fill no row are another row, padded with padding_id.
    """

    def __init__(
        self, array: FlatTokensArray, length: int, with_tail: bool = False, padding_id: int = 0
    ) -> None:
        self.kind = f"packed, the tail padded with {padding_id}" if with_tail else "packed"
        self.length = length
        self.is_padded = with_tail
        self.padding_id = padding_id
        self.row_count = array.row_count(length)
        self._stop = self.row_count * length
        if with_tail and array.token_count > self._stop:
            self._stop = array.token_count
            self.row_count += 1

    def token_ranges(self, rows: Int64) -> TokenRanges:
        """See RowSource."""
        places = np.flatnonzero(rows < self.row_count)
        starts = rows[places] * self.length
        stops = np.minimum(starts + self.length, self._stop)
        return TokenRanges(places, np.zeros_like(starts), starts, stops)


class Request(NamedTuple):
    """Rows to be read, and the context in which they are. From a store, the first requests have been sent."""

    row_count: int
    ranges: TokenRanges
    begins: Int64  # of the ranges with the token before each, where it may be an input
    context: AbstractContextManager[None]


class _Pieces(NamedTuple):
    """Tokens [starts[i], stops[i]), which begin in zarr chunk chunks[i], go to row rows[i] of a table, from column
    columns[i] on."""

    chunks: Int64
    starts: Int64
    stops: Int64
    rows: Int64
    columns: Int64

    def select(self, which: npt.NDArray[Any]) -> _Pieces:
        return _Pieces(*(values[which] for values in self))


class RowReader:
    """Reads rows of `source` from `tokens`. Threads may share it.

    mask: which tokens contribute to the loss; None for all.
    """

    def __init__(self, tokens: Elements, source: RowSource, mask: Elements | None) -> None:
        self.source = source
        self.is_masked = mask is not None
        # token_ranges may need requests too, so these rows are not requested ahead.
        self.can_fetch = tokens.is_remote and not source.reads_starts
        self._tokens = tokens
        self._mask = mask
        self._last_tokens: dict[int, int] = {}
        self.is_plain = isinstance(source, PackedRows) and not source.is_padded and mask is None

    def plain_row(self, row: int) -> tuple[Uint32, int]:
        """Return the tokens of a row, if `is_plain`, after the token before it; and the index of the first token."""
        start, length = row * self.source.length, self.source.length
        before = min(start, 1)
        return self._tokens.peek(start - before, start + length), before

    def stream(self) -> MappedStream | None:
        """All tokens as one mapped array, if rows can be cut from it: row r begins at r * length. Otherwise None."""
        return self._tokens.stream() if self.is_plain else None

    def request(self, rows: Int64) -> Request:
        """Prepare to read some rows. From a store, this sends the first requests."""
        ranges = self.source.token_ranges(rows)
        begins = ranges.starts if self.source.is_pack else np.maximum(ranges.starts - 1, 0)
        context: AbstractContextManager[None] = nullcontext()
        if self._tokens.is_remote:
            contexts = [self._tokens.expecting(begins, ranges.stops, at_once=True)]
            if self._mask is not None:
                contexts.append(self._mask.expecting(ranges.starts, ranges.stops, at_once=True))
            context = entered(contexts)
        return Request(len(rows), ranges, begins, context)

    def read(self, request: Request, table: RowTable, slots: Int64, is_cached: bool = False) -> None:
        """Put row i of the request into slot slots[i] of a table.

        is_cached: go through the cache of decoded zarr chunks, for callers that may need its neighbours. Otherwise each
            zarr chunk is decoded once, as far as needed.
        """
        ranges = request.ranges
        rows = slots[ranges.places]
        with request.context:
            if table.lengths is not None:
                counts = np.bincount(ranges.places, ranges.stops - ranges.starts, request.row_count)
                table.lengths[slots] = counts
                table.tokens[slots[counts < table.length]] = self.source.padding_id << 1
            columns = ranges.columns + 1 - (ranges.starts - request.begins)
            chunks = request.begins // self._tokens.chunk_elements
            pieces = _Pieces(chunks, request.begins, ranges.stops, rows, columns)
            pieces = pieces.select(np.argsort(request.begins, kind="stable"))
            if is_cached:
                self._put_ranges(pieces, table.tokens)
            else:
                with self._tokens.expecting(pieces.starts, pieces.stops):
                    self._put_chunks(pieces, table.tokens)
            if self.source.is_pack:
                self._mark_starts(ranges, rows, table.tokens)
            if table.trained is not None:
                self._put_mask(ranges, slots, table.trained)

    def _put_ranges(self, ranges: _Pieces, table: Uint32) -> None:
        _, starts, stops, rows, columns = (values.tolist() for values in ranges)
        found = self._tokens.read_ranges(list(zip(starts, stops, strict=True)))
        for row, column, values in zip(rows, columns, found, strict=True):
            table[row, column : column + len(values)] = values

    def _put_chunks(self, ranges: _Pieces, table: Uint32) -> None:
        tokens, chunk, width = self._tokens, self._tokens.chunk_elements, table.shape[1]
        # Whole rows inside a zarr chunk are copied together, all other pieces one by one.
        is_whole = (ranges.stops - ranges.starts == width) & (ranges.stops <= (ranges.chunks + 1) * chunk)
        whole, pieces = ranges.select(is_whole), _cut(ranges.select(~is_whole), chunk)
        is_before = (pieces.columns == 0) & (pieces.stops - pieces.starts == 1)  # only the token before a row
        before, pieces = pieces.select(is_before), pieces.select(~is_before)
        parts = list(zip(*(values.tolist() for values in pieces[1:]), strict=True))
        indexes = np.union1d(whole.chunks, pieces.chunks)
        spans = [np.searchsorted(each.chunks, [indexes, indexes + 1]).T.tolist() for each in (whole, pieces)]
        scratch = np.empty(chunk, dtype=tokens.dtype)  # takes memory only if it is used
        for index, (first, last), (low, high) in zip(indexes.tolist(), *spans, strict=True):
            base, here = index * chunk, parts[low:high]
            end = max([*[stop for _, stop, _, _ in here], *whole.stops[first:last][-1:].tolist()]) - base
            values = tokens.load_chunk(index, scratch, end)
            if len(values) == chunk and len(self._last_tokens) < MAX_LAST_TOKENS:
                self._last_tokens[index] = int(values[-1])
            if first < last:
                _put_rows(values, whole.starts[first:last] - base, whole.rows[first:last], table)
            for start, stop, row, column in here:
                table[row, column : column + stop - start] = values[start - base : stop - base]
        for index, row in zip(before.chunks.tolist(), before.rows.tolist(), strict=True):
            if not table[row, 1] & 1:
                found = self._last_tokens.get(index)
                if found is None or found > tokens.largest:  # if it is too large, reading it raises
                    found = tokens[(index + 1) * chunk - 1]
                table[row, 0] = found

    def _mark_starts(self, ranges: TokenRanges, rows: Int64, table: Uint32) -> None:
        """Set the start flag of each range of a pack. Raise DatasetError if a whole sequence has none."""
        firsts = table[rows, ranges.columns + 1]
        if self.source.is_whole and not (firsts & 1).all():
            at = int(ranges.starts[np.flatnonzero(~firsts & 1)[0]])
            what = "must start a sequence, as seq_starts lists it"
            raise damaged(f"{self._tokens.name}[{at}]", what, CONVERT_AGAIN)
        table[rows, ranges.columns + 1] = firsts | 1

    def _put_mask(self, ranges: TokenRanges, slots: Int64, trained: Bools) -> None:
        found = np.zeros((len(slots), trained.shape[1]), dtype=np.bool_)
        if self._mask is not None:
            put_trained(self._mask, ranges, found)
        else:
            counts = np.bincount(ranges.places, ranges.stops - ranges.starts, len(slots))
            found[:] = np.arange(trained.shape[1]) < counts[:, None]
        trained[slots] = found


class IndexedRows:
    """The rows of `source` as batches of int32: batch([3, 1]) is rows 3 and 1. Picklable and thread-safe.

    The rows of one call are read together: each zarr chunk is decoded once, and a store gets few large requests.

    array: the split that the source belongs to.
    start_id: input before the first token of each sequence.
    noun: "row" or "pack", for errors.
    """

    def __init__(self, array: Any, source: RowSource, start_id: int = 0, noun: str = "row") -> None:
        self._name = array.name
        self._noun = noun
        self.start_id = start_id
        self.kind = source.kind
        self._reader = RowReader(array.encoded_tokens, source, getattr(array, "loss_mask", None))

    def __len__(self) -> int:
        return self._reader.source.row_count

    def batch(self, indexes: Iterable[Any]) -> Batch:
        """Some rows in the given order, each index in [-len, len). Raise RangeError, an IndexError, otherwise."""
        if not isinstance(indexes, Iterable):
            raise invalid("indexes", "must be a list of integers", indexes)
        rows: Int64 = np.array([self._position(index) for index in indexes], dtype=np.int64)
        cut = RowCut(self._reader.source.length, np.dtype(np.int32), self.start_id, has_pool=False)
        if len(rows) == 1 and self._reader.is_plain:  # a table would cost more than the row
            encoded, first = self._reader.plain_row(int(rows[0]))
            return cut.batch(encoded, np.array([first]))
        slots = np.arange(len(rows))
        table = RowTable(max(1, len(rows)), cut.length, self._reader.source.is_padded, self._reader.is_masked)
        self._reader.read(self._reader.request(rows), table, slots, is_cached=True)
        return table.batch(slots, cut)

    def _position(self, index: Any) -> int:
        what, count = f"index of a {self._noun}", len(self)
        try:
            position = operator.index(index)
        except TypeError:
            raise invalid(what, "must be an integer", index, "Use batch() for several.") from None
        if not -count <= position < count:
            raise RangeError(f"{self._name}: {what} must be in [{-count}, {count}) (got {position})")
        return position % count


def _cut(ranges: _Pieces, chunk: int) -> _Pieces:
    """Cut ranges where zarr chunks end, and sort the pieces by zarr chunk."""
    counts = (ranges.stops - 1) // chunk - ranges.chunks + 1
    whole = ranges.select(np.repeat(np.arange(len(counts)), counts))
    chunks = whole.chunks + counting(counts)
    starts, stops = np.maximum(whole.starts, chunks * chunk), np.minimum(whole.stops, (chunks + 1) * chunk)
    pieces = _Pieces(chunks, starts, stops, whole.rows, whole.columns + starts - whole.starts)
    return pieces.select(np.argsort(chunks, kind="stable"))


def _put_rows(values: Uint32, firsts: Int64, rows: Int64, table: Uint32) -> None:
    """Copy the whole rows that begin at `firsts`, each with the token before it."""
    windows, count = windows_of(values, table.shape[1]), max(1, COPIED_TOKENS // table.shape[1])
    for at in range(0, len(rows), count):
        table[rows[at : at + count]] = windows[firsts[at : at + count]]
