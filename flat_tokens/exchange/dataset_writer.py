"""Blocks become a dataset, a write unit at a time: what is held is a unit of each array, however long the stream is.

for split, blocks in ...:
    split_writer = SplitWriter(root, split, layout)
    for block in blocks: split_writer.add(block)
    written = split_writer.end()
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

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


class _Run:
    """The values of one array, written as soon as they fill a unit. write: one of the writer's functions, from the
    position of the first value on."""

    def __init__(
        self, unit: int, dtype: npt.DTypeLike, write: Callable[[int, npt.NDArray[Any]], list[FileRecord]]
    ) -> None:
        self._held = np.empty(unit, dtype)
        self._write = write
        self.count = 0
        self.files: list[FileRecord] = []

    def add(self, values: npt.NDArray[Any]) -> None:
        unit = len(self._held)
        while len(values):
            filled = self.count % unit
            part, values = values[: unit - filled], values[unit - filled :]
            self._held[filled : filled + len(part)] = part
            self.count += len(part)
            if self.count % unit == 0:
                self._put(unit)

    def end(self) -> list[FileRecord]:
        """Write what is left; the records of all files."""
        if rest := self.count % len(self._held):
            self._put(rest)
        return self.files

    def _put(self, count: int) -> None:
        self.files += self._write(self.count - count, self._held[:count])


class SplitWriter:
    """Writes one split. has_mask: with a loss mask, which blocks have.
    Ids must be in [0, 2^31), and the last document must have ended when `end` is called."""

    def __init__(self, root: Path, split: str, layout: ArrayLayout, has_mask: bool = False) -> None:
        self._root, self._split, self._layout = root, split, layout
        writer.create_arrays(root, split, layout, has_mask)

        def run(unit: int, dtype: npt.DTypeLike, write: Callable[..., list[FileRecord]]) -> _Run:
            return _Run(unit, dtype, partial(write, root, split, layout))

        of_tokens, of_sequences = layout.write_unit_tokens, layout.write_unit_starts
        self._tokens = run(of_tokens, flat_format.TOKENS_DTYPE, writer.write_tokens)
        self._starts = run(of_sequences, flat_format.STARTS_DTYPE, writer.write_starts)
        self._mask = run(of_tokens, np.bool_, writer.write_mask) if has_mask else None
        self._trained_count = self._max_token_id = self._empty = 0
        self._is_open = False  # whether a document has begun and not ended

    def add(self, block: Block) -> None:
        """The next tokens, and where documents end among them. ArgumentError for a mask of another length, or one that
        has no place."""
        ids, ends, trained = block
        assert ends is not None
        if trained is not None and (self._mask is None or len(trained) != len(ids)):
            most = 0 if self._mask is None else len(ids)
            raise ArgumentError(f"{self._split}: the loss mask must have {most} entries (got {len(trained)})")
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
        self._starts.add(starts.astype(flat_format.STARTS_DTYPE) + np.uint64(self._tokens.count))
        self._tokens.add(encoded)
        if self._mask is not None:
            bits = np.ones(count, np.bool_) if trained is None else trained
            self._trained_count += int(np.count_nonzero(bits))
            self._mask.add(bits)

    def end(self) -> WrittenSplit:
        """Write what is left, and the split's metadata."""
        assert not self._is_open
        trained = None if self._mask is None else self._trained_count
        record = SplitRecord(self._tokens.count, self._starts.count, self._max_token_id, trained)
        self._starts.add(np.array([record.token_count], flat_format.STARTS_DTYPE))  # the closing one
        runs = (self._tokens, self._starts, self._mask)
        files = [file for run in runs if run is not None for file in run.end()]
        files += writer.create_split(
            self._root,
            self._split,
            *record[:3],
            self._layout,
            has_mask=trained is not None,
        )
        return WrittenSplit(record, files, self._empty)
