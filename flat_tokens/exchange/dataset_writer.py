"""Blocks become a dataset, a write unit at a time: what is held is a unit of each array, however long the stream is.

for split, blocks in ...:
    split_writer = SplitWriter(root, split, layout)
    for block in blocks: split_writer.add(block)
    written = split_writer.end()
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from flat_tokens import format as flat_format
from flat_tokens import writer
from flat_tokens.errors import ArgumentError
from flat_tokens.exchange.blocks import Block
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, SplitRecord


class WrittenSplit(NamedTuple):
    """What a split came to. empty_documents: those without tokens, which a dataset does not keep."""

    record: SplitRecord
    files: list[FileRecord]
    empty_documents: int


class SplitWriter:
    """Writes one split. has_mask: with a loss mask, which blocks have. Ids must be in [0, 2^31), and the last document
    must have ended when `end` is called."""

    def __init__(self, root: Path, split: str, layout: ArrayLayout, has_mask: bool = False) -> None:
        self._root, self._split, self._layout = root, split, layout
        writer.create_arrays(root, split, layout, has_mask=has_mask)
        self._trained = np.empty(layout.write_unit_tokens, np.bool_) if has_mask else None
        self._trained_count = 0
        self._tokens = np.empty(layout.write_unit_tokens, flat_format.TOKENS_DTYPE)
        self._starts = np.empty(layout.write_unit_starts, flat_format.STARTS_DTYPE)
        self._token_count = self._seq_count = self._max_token_id = self._empty = 0
        self._is_open = False  # whether a document has begun and not ended
        self._files: list[FileRecord] = []

    def add(self, block: Block) -> None:
        """The next tokens, and where documents end among them. ArgumentError for a mask of another length, or one that
        has no place."""
        ids, ends, trained = block
        assert ends is not None
        if trained is not None and (self._trained is None or len(trained) != len(ids)):
            why = "is not written" if self._trained is None else f"is not that of {len(ids)} tokens"
            raise ArgumentError(f"{self._split}: a mask of {len(trained)} {why}")
        count, was_open = len(ids), self._is_open
        # A document begins at each end of another; not if no token follows before the next end.
        borders = np.concatenate([[] if was_open else [0], ends, [count]]).astype(np.int64)
        starts = borders[:-1][borders[1:] > borders[:-1]]
        self._is_open = count > int(ends[-1]) if len(ends) else count > 0 or was_open
        self._empty += len(ends) - (len(starts) + was_open - self._is_open)
        if count:
            self._max_token_id = max(self._max_token_id, int(ids.max()))
        encoded = ids.astype(flat_format.TOKENS_DTYPE)
        encoded <<= 1
        encoded[starts] |= 1
        self._add_starts(starts.astype(flat_format.STARTS_DTYPE) + np.uint64(self._token_count))
        self._add_tokens(encoded, np.ones(count, np.bool_) if trained is None else trained)

    def _add_tokens(self, encoded: flat_format.Uint32, trained: flat_format.Bools) -> None:
        unit = len(self._tokens)
        while len(encoded):
            filled = self._token_count % unit
            part, encoded = encoded[: unit - filled], encoded[unit - filled :]
            self._tokens[filled : filled + len(part)] = part
            if self._trained is not None:
                self._trained[filled : filled + len(part)] = trained[: len(part)]
                self._trained_count += int(np.count_nonzero(trained[: len(part)]))
            trained = trained[len(part) :]
            self._token_count += len(part)
            if self._token_count % unit == 0:
                self._put_tokens(unit)

    def _put_tokens(self, count: int) -> None:
        first = self._token_count - count
        self._files += writer.write_tokens(self._root, self._split, self._layout, first, self._tokens[:count])
        if self._trained is not None:
            self._files += writer.write_mask(
                self._root, self._split, self._layout, first, self._trained[:count]
            )

    def _add_starts(self, starts: flat_format.Uint64) -> None:
        unit = len(self._starts)
        while len(starts):
            filled = self._seq_count % unit
            part, starts = starts[: unit - filled], starts[unit - filled :]
            self._starts[filled : filled + len(part)] = part
            self._seq_count += len(part)
            if self._seq_count % unit == 0:
                self._put_starts(unit)

    def _put_starts(self, count: int) -> None:
        first = self._seq_count - count
        self._files += writer.write_starts(self._root, self._split, self._layout, first, self._starts[:count])

    def end(self) -> WrittenSplit:
        """Write what is left, and the split's metadata."""
        assert not self._is_open
        trained = None if self._trained is None else self._trained_count
        record = SplitRecord(self._token_count, self._seq_count, self._max_token_id, trained)
        if rest := self._token_count % len(self._tokens):
            self._put_tokens(rest)
        self._add_starts(np.array([self._token_count], flat_format.STARTS_DTYPE))  # the closing one
        if rest := self._seq_count % len(self._starts):
            self._put_starts(rest)
        self._files += writer.create_split(
            self._root, self._split, *record[:3], self._layout, has_mask=trained is not None
        )
        return WrittenSplit(record, self._files, self._empty)
