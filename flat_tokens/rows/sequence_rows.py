"""Unpacked rows: one sequence per row, padded. Long sequences are truncated, or split over several rows.

Truncated, row i is sequence i up to `length` tokens. Split, a sequence of n tokens makes ceil(n / length) consecutive
rows. The constructor counts the rows of each group of sequences in one pass over seq_starts, 8 bytes per group, so
that two look-ups find any row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flat_tokens.errors import CONVERT_AGAIN, DatasetError, damaged
from flat_tokens.format import Int64, not_rising
from flat_tokens.reader import FlatTokensArray
from flat_tokens.rows.reader import RowSource, TokenRanges

LONG_SEQUENCES = ("split", "truncate")
GROUP = 1024  # sequences that are counted together


@dataclass(frozen=True)
class Losses:
    """Token counts of the rows of a split, over all rows.

    tokens: tokens_in_rows + tokens_truncated + tokens_in_tail.
    tokens_truncated: tokens after the row in sequences that are longer.
    tokens_in_tail: tokens after the last full row of the packed stream.
    padding: positions without a token.
    sequences_cut: sequences that are longer than a row.
    rows_left_out: rows per epoch that fill no batch; others in each epoch when shuffled.
    """

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


class SequenceRows(RowSource):
    """One sequence per row, or a part of one; see RowSource."""

    is_padded = reads_starts = True

    def __init__(self, array: FlatTokensArray, length: int, long_sequences: str, padding_id: int) -> None:
        self.kind = f"{long_sequences}, padded with {padding_id}"
        self.length = length
        self.padding_id = padding_id
        self._array = array
        self._rows_before: Int64 | None = None  # each group of sequences, if they are split
        if long_sequences == "split":
            counts = [int((-(-np.diff(starts) // length)).sum()) for starts in self._groups()]
            self._rows_before = np.cumsum([0, *counts])
            self.row_count = int(self._rows_before[-1])
        else:
            self.row_count = array.seq_count

    def token_ranges(self, rows: Int64) -> TokenRanges:
        """See RowSource."""
        order = np.argsort(rows, kind="stable")[: np.count_nonzero(rows < self.row_count)]
        rising = rows[order]
        groups = rising // GROUP
        if self._rows_before is not None:
            groups = np.searchsorted(self._rows_before, rising, side="right") - 1
        starts, stops = np.empty_like(rising), np.empty_like(rising)
        with self._array.seq_starts.expecting(groups * GROUP, (groups + 1) * GROUP + 1):
            for group in np.unique(groups).tolist():
                here = np.flatnonzero(groups == group)
                seq_starts = self._group(group)
                inside = rising[here] - group * GROUP
                part = np.zeros_like(inside)
                if self._rows_before is not None:
                    before = np.cumsum(np.append(0, -(-np.diff(seq_starts) // self.length)))
                    part = rising[here] - self._rows_before[group]
                    inside = np.searchsorted(before, part, side="right") - 1
                    part -= before[inside]
                starts[here] = seq_starts[inside] + part * self.length
                stops[here] = np.minimum(starts[here] + self.length, seq_starts[inside + 1])
        return TokenRanges(order, np.zeros_like(order), starts, stops)

    def losses(self, rows_left_out: int) -> Losses:
        """Count the tokens that are truncated and the padding; one pass over seq_starts."""
        cut = beyond = 0
        for starts in self._groups():
            over = np.maximum(np.diff(starts) - self.length, 0)
            cut += int(np.count_nonzero(over))
            beyond += int(over.sum())
        truncated = beyond if self._rows_before is None else 0
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

    def _groups(self) -> Iterator[Int64]:
        with self._array.seq_starts.expecting((0,), (len(self._array.seq_starts),)):
            for group in range(-(-self._array.seq_count // GROUP)):
                yield self._group(group)

    def _group(self, group: int) -> Int64:
        """seq_starts of a group of sequences and the end of the last one, checked."""
        array, first = self._array, group * GROUP
        starts: Int64 = array.seq_starts.read(first, min(first + GROUP, array.seq_count) + 1).astype(np.int64)
        wrong = np.flatnonzero((starts[1:] <= starts[:-1]) | (starts[1:] > array.token_count)) + 1
        if len(wrong):
            at, name = int(wrong[0]), array.seq_starts.name
            if starts[at] > array.token_count:
                what = f"must be at most the token count {array.token_count} (got {starts[at]})"
                raise damaged(f"{name}[{first + at}]", what, CONVERT_AGAIN)
            what = not_rising(name, first + at, starts[at], starts[at - 1])
            raise DatasetError(f"{what}. {CONVERT_AGAIN}")
        return starts
