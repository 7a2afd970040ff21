"""Writes one split from blocks of tokens, with at most one file of each array in memory."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens import format as flat_format
from flat_tokens import writer
from flat_tokens.errors import ArgumentError
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, SplitRecord

Ends = npt.NDArray[np.int64]


class Block(NamedTuple):
    """Some tokens, and where documents end among them. [[1, 2], [], [3, 4]] is Block([1, 2, 3, 4], [2, 2, 4]).

    ids: integers[n].
    ends: int64 in [0, n], not falling; None if unknown. A document may begin in one block and end in a later one. An
        end between two blocks is n of the first or 0 of the second.
    trained: bool[n], whether each token contributes to the loss; None for all.
    """

    ids: npt.NDArray[Any]
    ends: Ends | None
    trained: flat_format.Bools | None = None


class WrittenSplit(NamedTuple):
    """A split that was written. empty_documents: documents without tokens, which a dataset leaves out."""

    record: SplitRecord
    files: list[FileRecord]
    empty_documents: int


class SplitWriter:
    """Writes the blocks of one split.

    has_mask: write a loss mask, with True for the tokens of blocks without one.
    """

    def __init__(
        self, root: writer.Destination, split: str, layout: ArrayLayout, has_mask: bool = False
    ) -> None:
        self._root, self._split, self._layout = root, split, layout
        writer.create_arrays(root, split, layout, has_mask)
        self._tokens = _Run(root, split, layout, flat_format.TOKENS_NAME)
        self._starts = _Run(root, split, layout, flat_format.STARTS_NAME)
        self._mask = _Run(root, split, layout, flat_format.MASK_NAME) if has_mask else None
        self._trained_count = self._max_token_id = self._empty = 0
        self._is_open = False  # whether a document has begun and not ended

    def add(self, block: Block) -> None:
        """Append a block with IDs in [0, 2^31). Raise ArgumentError for a wrong loss mask."""
        ids, ends, trained = block
        assert ends is not None
        if trained is not None and (
            self._mask is None or trained.dtype != np.bool_ or trained.shape != ids.shape
        ):
            rule = "must be None without has_mask" if self._mask is None else f"must be bool[{len(ids)}]"
            raise ArgumentError(
                f"{self._split}: loss_mask {rule} (got {trained.dtype.name}{list(trained.shape)})"
            )
        count, was_open = len(ids), self._is_open
        # A document starts after each end, unless no token follows before the next end.
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
        """Write the rest and the metadata. Raise ArgumentError if the end of the last document is missing."""
        if self._is_open:
            raise ArgumentError(f"{self._split}: the last sequence has no end")
        trained = None if self._mask is None else self._trained_count
        record = SplitRecord(self._tokens.count, self._starts.count, self._max_token_id, trained)
        self._starts.add(np.array([record.token_count], flat_format.STARTS_DTYPE))
        runs = (self._tokens, self._starts, self._mask)
        files = [file for run in runs if run is not None for file in run.end()]
        files += writer.create_split(
            self._root, self._split, *record[:3], self._layout, has_mask=trained is not None
        )
        return WrittenSplit(record, files, self._empty)


class _Run:
    """The values of one array, written as soon as they fill a unit."""

    def __init__(self, root: writer.Destination, split: str, layout: ArrayLayout, array: str) -> None:
        self._held = np.empty(*writer.run_unit(layout, array))
        self._write = partial(writer.write_run, root, split, layout, array)
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
        """Write the rest. Return the records of all files."""
        if rest := self.count % len(self._held):
            self._put(rest)
        return self.files

    def _put(self, count: int) -> None:
        self.files += self._write(self.count - count, self._held[:count])
