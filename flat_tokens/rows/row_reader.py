"""Numbered rows of one dataset, read into a RowWindow with their loss mask."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt

from flat_tokens.masks import put_trained
from flat_tokens.rows.row_source import ChunkReader, RowSource
from flat_tokens.rows.row_window import RowWindow
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.pieces import entered

Int64 = npt.NDArray[np.int64]


class RowReader:
    """The rows of `source`. For one thread at a time.

    tokens: the encoded tokens.
    mask: which tokens contribute to the loss; None for all.
    """

    def __init__(self, tokens: Elements, source: RowSource, mask: Elements | None) -> None:
        self.source = source
        self.is_masked = mask is not None
        # Where the tokens of a row are may itself need requests, so those rows are not requested ahead.
        self.can_fetch = tokens.is_remote and not source.reads_starts
        self._tokens = tokens
        self._mask = mask
        self._chunks: ChunkReader | None = None

    def fetch(self, rows: Int64) -> AbstractContextManager[None]:
        """Send the first requests for some rows of a store. The thread that reads the rows enters the result."""
        ranges = self.source.token_ranges(rows)
        starts, stops = ranges.starts, ranges.stops
        contexts = [self._tokens.expecting(np.maximum(starts - 1, 0), stops, at_once=True)]
        if self._mask is not None:
            contexts.append(self._mask.expecting(starts, stops, at_once=True))
        return entered(contexts)

    def read(
        self,
        rows: Int64,
        window: RowWindow,
        fetched: AbstractContextManager[None] | None = None,
        is_brief: bool = False,
    ) -> None:
        """Put row rows[i] into place i of a window. Each zarr chunk is read once.

        fetched: the result of `fetch` for the same rows.
        is_brief: decode only the front of each zarr chunk that is needed, for rows that are read alone.
        """
        if self._chunks is None:
            self._chunks = ChunkReader(self._tokens)
        if fetched is None:
            fetched = self.fetch(rows) if self._mask is not None and self._tokens.is_remote else nullcontext()
        self._chunks.is_brief = is_brief
        with fetched:
            self.source.fill(rows, window, self._chunks)
            if window.trained is None:
                return
            if self._mask is None:
                window.trained[: len(rows)] = window.all_trained()[: len(rows)]
            else:
                put_trained(self._mask, self.source.token_ranges(rows), window.trained[: len(rows)])
