"""Unpacked rows: one sequence a row, padded behind; what is longer than a row is truncated or split.

Truncated, row i is sequence i up to `length` tokens. Split, a sequence of n tokens makes ceil(n / length)
rows one after the other; the rows before a thousand sequences are counted once, in one pass over seq_starts
(8 bytes a thousand sequences are kept, 3 ns a sequence), so that any row is found by two look-ups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import invalid
from flat_tokens.errors import CONVERT_AGAIN, DatasetError, damaged
from flat_tokens.format import not_rising
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.row_source import ChunkReader, Int64, TokenRanges, put_pieces
from flat_tokens.rows.row_window import RowWindow

LONG_SEQUENCES = ("split", "truncate")
GROUP = 1024  # sequences that are counted together
LARGEST_GAP = 4096  # starts between two wanted ones that are read rather than skipped


@dataclass(frozen=True)
class Losses:
    """What becomes of the tokens of a split when its rows are made, over all rows.

    tokens = tokens_in_rows + tokens_truncated + tokens_in_tail. tokens_truncated: beyond the row in sequences
    that are longer; tokens_in_tail: behind the last full row of the packed stream. padding: places without a
    token. sequences_cut: how many are longer than a row. rows_left_out: of each epoch, since they fill no
    batch; others in each epoch when shuffled."""

    tokens: int
    tokens_in_rows: int
    tokens_truncated: int
    tokens_in_tail: int
    padding: int
    rows: int
    sequences_cut: int
    rows_left_out: int

    def __str__(self) -> str:
        share = self.padding / max(1, self.padding + self.tokens_in_rows)
        return (
            f"{self.tokens_in_rows:,} of {self.tokens:,} tokens in {self.rows:,} rows; {self.tokens_truncated:,} "
            f"truncated, {self.tokens_in_tail:,} in the tail, {self.sequences_cut:,} sequences longer than a row, "
            f"{share:.1%} padding, {self.rows_left_out:,} rows left out of each epoch"
        )


class SequenceRows:
    """One sequence a row, or a part of one."""

    is_padded = True
    reads_starts = True

    def __init__(self, array: FlatTokensArray, length: int, long_sequences: str, padding_id: int) -> None:
        if length < 1:
            raise invalid("length of a row", "must be at least 1", length)
        self.kind = f"{long_sequences}, padded with {padding_id}"
        self.length = length
        self.padding_id = padding_id
        self._array = array
        self._is_split = long_sequences == "split"
        self._rows_before: Int64 | None = None
        if self._is_split:
            counts = [0]
            for lengths in _length_groups(array):
                counts.append(int((-(-lengths // length)).sum()))
            self._rows_before = np.cumsum(np.array(counts, dtype=np.int64))
            self.row_count = int(self._rows_before[-1])
        else:
            self.row_count = array.seq_count

    def ranges(self, rows: Int64) -> tuple[Int64, Int64, npt.NDArray[np.bool_]]:
        """Where the tokens of rising rows begin and end, and whether a sequence starts there."""
        if self._rows_before is None:
            starts, ends = _starts_and_ends(self._array, rows)
            return starts, np.minimum(ends, starts + self.length), np.ones(len(rows), dtype=np.bool_)
        groups = np.searchsorted(self._rows_before, rows, side="right") - 1
        starts, ends = np.empty_like(rows), np.empty_like(rows)
        is_first = np.empty(len(rows), dtype=np.bool_)
        with self._array.seq_starts.expecting(groups * GROUP, (groups + 1) * GROUP + 1):
            for group in np.unique(groups).tolist():
                here = np.flatnonzero(groups == group)
                seq_starts = self._array.seq_starts.read(
                    group * GROUP, min((group + 1) * GROUP, self._array.seq_count) + 1
                ).astype(np.int64)
                lengths = _lengths(self._array, seq_starts, group * GROUP)
                before = np.concatenate([[0], np.cumsum(-(-lengths // self.length))])
                inside = rows[here] - self._rows_before[group]
                sequence = np.searchsorted(before, inside, side="right") - 1
                part = inside - before[sequence]
                starts[here] = seq_starts[sequence] + part * self.length
                ends[here] = np.minimum(starts[here] + self.length, seq_starts[sequence + 1])
                is_first[here] = part == 0
        return starts, ends, is_first

    def token_ranges(self, rows: Int64) -> TokenRanges:
        """See RowSource.token_ranges."""
        order = np.argsort(rows, kind="stable")
        order = order[: np.count_nonzero(rows < self.row_count)]
        starts, stops, _ = self.ranges(rows[order])
        return TokenRanges(order, np.zeros_like(order), starts, stops)

    def fill(self, rows: Int64, window: RowWindow, chunks: ChunkReader) -> None:
        """See RowSource.fill."""
        assert window.lengths is not None
        table = window.table()
        table[: len(rows)] = self.padding_id << 1
        order = np.argsort(rows, kind="stable")
        order = order[: np.count_nonzero(rows < self.row_count)]
        starts, ends, is_first = self.ranges(rows[order])
        begins = np.where(is_first, starts, starts - 1)  # the id in front of a later part is its first input
        window.lengths[: len(rows)] = 0
        window.lengths[order] = ends - starts
        put_pieces(chunks.pieces(begins, ends), table, order, is_first.astype(np.int64))

    def losses(self, rows_left_out: int) -> Losses:
        """What is lost and padded; one pass over seq_starts, 5 ns a sequence."""
        cut = beyond = 0
        for lengths in _length_groups(self._array):
            is_long = lengths > self.length
            cut += int(is_long.sum())
            beyond += int((lengths[is_long] - self.length).sum())
        truncated = 0 if self._is_split else beyond
        used = self._array.token_count - truncated
        return Losses(
            tokens=self._array.token_count,
            tokens_in_rows=used,
            tokens_truncated=truncated,
            tokens_in_tail=0,
            padding=self.row_count * self.length - used,
            rows=self.row_count,
            sequences_cut=cut,
            rows_left_out=rows_left_out,
        )


def _length_groups(array: FlatTokensArray) -> Iterator[Int64]:
    """The lengths of all sequences, GROUP by GROUP."""
    with array.seq_starts.expecting((0,), (len(array.seq_starts),)):
        for first in range(0, array.seq_count, GROUP):
            starts = array.seq_starts.read(first, min(first + GROUP, array.seq_count) + 1).astype(np.int64)
            yield _lengths(array, starts, first)


def _lengths(array: FlatTokensArray, starts: Int64, first: int) -> Int64:
    lengths: Int64 = starts[1:] - starts[:-1]
    name = array.seq_starts.name
    if len(lengths) and int(lengths.min()) < 1:
        at = int(lengths.argmin()) + 1
        what = not_rising(name, first + at, starts[at], starts[at - 1])
        raise DatasetError(f"{what}. {CONVERT_AGAIN}")
    if len(starts) and int(starts[-1]) > array.token_count:
        what = f"must be at most the token count {array.token_count} (got {starts[-1]})"
        raise damaged(f"{name}[{first + len(lengths)}]", what, CONVERT_AGAIN)
    return lengths


def _starts_and_ends(array: FlatTokensArray, sequences: Int64) -> tuple[Int64, Int64]:
    """seq_starts[i] and seq_starts[i + 1] for rising i, read in as few stretches as make sense."""
    starts, ends = np.empty_like(sequences), np.empty_like(sequences)
    if not len(sequences):  # the rows are padding alone
        return starts, ends
    borders = np.flatnonzero(np.diff(sequences) > LARGEST_GAP) + 1
    with array.seq_starts.expecting(sequences, sequences + 2):
        for here in np.split(np.arange(len(sequences)), borders):
            first, last = int(sequences[here[0]]), int(sequences[here[-1]])
            stretch = array.seq_starts.read(first, last + 2).astype(np.int64)
            _lengths(array, stretch, first)
            starts[here] = stretch[sequences[here] - first]
            ends[here] = stretch[sequences[here] - first + 1]
    return starts, ends
