"""Which split a document belongs to, and the ids of a text chunk put apart accordingly.

By hash: a document is validation if XXH64 of its bytes, seeded, is below fraction * 2^64. The rule looks at the
document alone, so it does not change when other documents come or go, exact copies stay together, and a greater
fraction only adds to the validation split. By file: the documents of --validation files are validation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convert.errors import BrokenInvariant
from convert.shard import SplitCounts


def hash_threshold(fraction: float) -> int:
    """A hash below it means validation: 0 to 2^64. Exact, since a double times a power of two is: 0.5 -> 2^63."""
    return int(fraction * 2.0**64)


def is_validation(hashes: NDArray[np.uint64], threshold: int) -> NDArray[np.bool_]:
    """bool[documents], True for validation; threshold from `hash_threshold`."""
    if threshold == 0:
        return np.zeros(len(hashes), dtype=np.bool_)
    return hashes <= np.uint64(threshold - 1)  # 2^64 itself would not fit


@dataclass
class SplitParts:
    """The documents of one text chunk that fall in one split, gathered piece by piece."""

    documents: int = 0
    _tokens: list[NDArray[np.uint32]] = field(default_factory=list)
    _lengths: list[NDArray[np.uint64]] = field(default_factory=list)

    def add(self, tokens: NDArray[np.uint32], lengths: NDArray[np.uint64]) -> None:
        """Add documents: their ids end to end and the length of each, empty ones too. Keeps views, no copies."""
        self.documents += len(lengths)
        self._tokens.append(tokens)
        self._lengths.append(lengths[lengths > 0])

    def finish(
        self, dtype: np.dtype[Any], largest_id: int
    ) -> tuple[NDArray[np.uint64], NDArray[Any], SplitCounts]:
        """(starts uint64[sequences], ids dtype[tokens], counts). An id above `largest_id` is a bug and raises."""
        lengths = np.concatenate(self._lengths) if self._lengths else np.zeros(0, dtype=np.uint64)
        starts = np.cumsum(lengths, dtype=np.uint64)
        starts -= lengths
        highest = max((int(part.max()) for part in self._tokens if part.size), default=0)
        if highest > largest_id:
            raise BrokenInvariant(
                f"the encoder gave id {highest}, above the tokenizer's highest id {largest_id}"
            )
        # One pass both joins and narrows; the cast cannot wrap, since every id was just found to fit.
        parts = self._tokens or [np.zeros(0, dtype=np.uint32)]
        tokens = np.concatenate(parts, dtype=dtype, casting="unsafe")
        counts = SplitCounts(
            self.documents, self.documents - len(lengths), len(lengths), len(tokens), highest
        )
        return starts, tokens, counts


def deal_out(
    tokens: NDArray[np.uint32],
    offsets: NDArray[np.uint64],
    validation: NDArray[np.bool_],
    into: tuple[SplitParts, SplitParts],
) -> None:
    """Add each document to the split it belongs to: into[0] train, into[1] validation.

    tokens, offsets: as `bpe.Ragged`; validation: bool[documents]. Documents go in runs of the same split: a small
    fraction costs next to nothing, and any fraction at most a microsecond a document.
    """
    lengths = np.diff(offsets)
    changes = np.flatnonzero(validation[1:] != validation[:-1]) + 1
    borders = [0, *changes.tolist(), len(validation)]
    for begin, end in pairwise(borders):
        if begin < end:
            parts = into[1 if validation[begin] else 0]
            parts.add(tokens[int(offsets[begin]) : int(offsets[end])], lengths[begin:end])
