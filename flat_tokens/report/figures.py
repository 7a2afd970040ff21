"""The figures of a report: of a whole small dataset, or of an even sample of a large one.

Lengths come from blocks of seq_starts, frequencies from runs of tokens. Blocks, runs and the sequences shown are spread
evenly over a split. The figures state how much was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from flat_tokens.arguments import integer
from flat_tokens.format import SPLITS, decode_ids
from flat_tokens.opening import Dataset
from flat_tokens.packs.plan import read_starts
from flat_tokens.statistics import Counts, counts_of, describe
from flat_tokens.storage import entries as tokenizer_entries

RUN_TOKENS = 2**16
BLOCK_SEQS = 2**18
LISTED_SOURCES = 50


@dataclass(frozen=True)
class Bounds:
    """How much is read.

    tokens: tokens per split, for frequencies.
    lengths: sequences per split, for lengths.
    sequences: sequences per split to show.
    shown_tokens: tokens per sequence to show.
    entries: entries per list.
    """

    tokens: int = 2**23
    lengths: int = 2**24
    sequences: int = 6
    shown_tokens: int = 400
    entries: int = 25

    def __post_init__(self) -> None:
        for name in ("tokens", "lengths", "sequences", "shown_tokens", "entries"):
            integer(name, getattr(self, name), 0 if name == "sequences" else 1)


@dataclass(frozen=True)
class Shown:
    """A sequence on the page: its index, its length, and its first IDs."""

    index: int
    token_count: int
    ids: list[int]


@dataclass(frozen=True)
class SplitFigures:
    """The figures of one split.

    facts: from `statistics.describe`, for the whole split.
    lengths, ids: of the sample.
    text: bytes per token of the sample without special tokens, which are not text; 0 for an unknown ID.
    """

    name: str
    facts: dict[str, Any]
    lengths: Counts
    ids: Counts
    text: Counts
    shown: list[Shown]

    @cached_property
    def count_of(self) -> dict[int, int]:
        """ID -> occurrences in the sample."""
        return dict(zip(self.ids.values.tolist(), self.ids.counts.tolist(), strict=True))


@dataclass(frozen=True)
class Figures:
    """All figures of a page. entries: ID -> bytes, None without a tokenizer."""

    splits: list[SplitFigures]
    entries: dict[int, bytes] | None
    special_ids: frozenset[int]
    facts: dict[str, Any]
    bounds: Bounds

    def sum(self, name: str) -> int:
        """Return the sum of a fact over the splits."""
        return sum(int(split.facts[name]) for split in self.splits)


def gather(dataset: Dataset, bounds: Bounds, tokenizer: Path | None = None) -> Figures:
    """Read the figures. tokenizer: tokenizer.json to show text with (default: the dataset's own)."""
    facts = describe(dataset, with_lengths=False, most_sources=LISTED_SOURCES)
    path = tokenizer or dataset.tokenizer_path
    known = tokenizer_entries.load_entries(path) if path is not None else None
    special: frozenset[int] = known.special_ids if known is not None else frozenset()

    def gather_split(name: str) -> SplitFigures:
        array, shown = dataset[name], []
        starts, tokens = array.seq_starts, array.encoded_tokens
        lengths = counts_of(
            np.diff(read_starts(starts, start, stop))
            for start, stop in spread(array.seq_count, min(BLOCK_SEQS, bounds.lengths), bounds.lengths)
        )
        ids = counts_of(
            decode_ids(tokens.read(start, stop))
            for start, stop in spread(array.token_count, min(RUN_TOKENS, bounds.tokens), bounds.tokens)
        )
        ordinary = np.array([id_ not in special for id_ in ids.values.tolist()], bool)
        sizes = np.array([len((known or {}).get(id_, b"")) for id_ in ids.values.tolist()], np.int64)
        for index, _ in spread(array.seq_count, 1, bounds.sequences) if bounds.sequences else []:
            start, stop = array.sequence_range(index)
            begin = decode_ids(tokens.read(start, min(stop, start + bounds.shown_tokens)))
            shown.append(Shown(index, stop - start, begin.tolist()))
        text = Counts(sizes[ordinary], ids.counts[ordinary])
        return SplitFigures(name, facts["splits"][name], lengths, ids, text, shown)

    return Figures([gather_split(name) for name in SPLITS], known, special, facts, bounds)


def spread(total: int, size: int, limit: int) -> list[tuple[int, int]]:
    """Return spans of `size` elements, at most `limit` in all, spread evenly over [0, total).

    10, 2, 4 -> [(0, 2), (8, 10)]; all of [0, total) if `limit` allows.
    """
    cells = -(-total // size)
    count = cells if total <= limit else min(max(limit // size, 1), cells)
    chosen = [index * (cells - 1) // max(count - 1, 1) for index in range(count)]
    return [(cell * size, min((cell + 1) * size, total)) for cell in chosen]
