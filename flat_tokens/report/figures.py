"""The figures of a report, read within bounds: all of a small dataset, an even sample of a large one.

Lengths come from seq_starts, in blocks; frequencies of ids from runs of tokens spread evenly over a split; the
sequences shown are spread evenly, too. How much was looked at is said (`SplitFigures.sampled_tokens`,
`Lengths.seq_count`), so that the page can."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import invalid
from flat_tokens.format import decode_ids
from flat_tokens.opening import Dataset
from flat_tokens.packs.plan import read_starts
from flat_tokens.reader import FlatTokensArray
from flat_tokens.statistics import describe
from flat_tokens.storage import entries as tokenizer_entries

RUN_TOKENS = 2**16  # a zarr chunk or a quarter of one
BLOCK_SEQS = 2**18
PERCENTILES = (1, 10, 50, 90, 99)
LISTED_SOURCES = 50


@dataclass(frozen=True)
class Bounds:
    """How much is looked at. tokens: of each split, for frequencies; lengths: sequences of each split;
    sequences: shown of each split, with the first `shown_tokens` of each; entries: in each list."""

    tokens: int = 2**23
    lengths: int = 2**24
    sequences: int = 6
    shown_tokens: int = 400
    entries: int = 25

    def __post_init__(self) -> None:
        for name, least in (
            ("tokens", 1),
            ("lengths", 1),
            ("sequences", 0),
            ("shown_tokens", 1),
            ("entries", 1),
        ):
            if getattr(self, name) < least:
                raise invalid(name, f"must be at least {least}", getattr(self, name))


@dataclass(frozen=True)
class Lengths:
    """How long sequences are. values, counts: int64, the different lengths in ascending order and how often they
    occur."""

    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @property
    def seq_count(self) -> int:
        """How many sequences were looked at."""
        return int(self.counts.sum())

    @property
    def token_count(self) -> int:
        """How many tokens they have together."""
        return int((self.values * self.counts).sum())

    def percentile(self, percent: int) -> int:
        """The least length that so many percent of the sequences do not exceed."""
        at = int(np.searchsorted(np.cumsum(self.counts), self.seq_count * percent / 100))
        return int(self.values[min(at, len(self.values) - 1)])

    def binned(self, edges: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Sequences and tokens in each bin [edges[i], edges[i + 1])."""
        bins = np.searchsorted(edges, self.values, "right") - 1
        size = len(edges) - 1
        seqs = np.bincount(bins, self.counts, size).astype(np.int64)
        return seqs, np.bincount(bins, self.counts * self.values, size).astype(np.int64)


@dataclass(frozen=True)
class Shown:
    """A sequence of the page: its number, its length, its first ids."""

    index: int
    token_count: int
    ids: list[int]


@dataclass(frozen=True)
class SplitFigures:
    """What is known of one split. ids, id_counts: the different ids of the sampled tokens, and how often they
    occur."""

    name: str
    token_count: int
    seq_count: int
    lengths: Lengths
    ids: npt.NDArray[np.uint32]
    id_counts: npt.NDArray[np.int64]
    shown: list[Shown]
    facts: dict[str, Any]

    @property
    def sampled_tokens(self) -> int:
        """How many tokens ids and id_counts were counted in."""
        return int(self.id_counts.sum())

    @property
    def count_of(self) -> dict[int, int]:
        """Id -> how often it occurs in the sample."""
        return dict(zip(self.ids.tolist(), self.id_counts.tolist(), strict=True))


@dataclass(frozen=True)
class Figures:
    """All that the page tells. entries: id -> bytes, None if the dataset has no tokenizer that can be read."""

    splits: list[SplitFigures]
    entries: dict[int, bytes] | None
    special_ids: frozenset[int]
    facts: dict[str, Any]
    bounds: Bounds

    @property
    def names(self) -> list[str]:
        """train, validation."""
        return [split.name for split in self.splits]


def gather(dataset: Dataset, bounds: Bounds, tokenizer: Path | None = None) -> Figures:
    """Read the figures. tokenizer: a tokenizer.json to show text by, by default the dataset's own."""
    facts = describe(dataset, with_lengths=False, most_sources=LISTED_SOURCES)
    path = tokenizer or dataset.tokenizer_path
    known = tokenizer_entries.load_entries(path) if path is not None else None
    special = tokenizer_entries.load_special_ids(path) if path is not None else frozenset()
    splits = [_split(dataset[name], facts["splits"][name], bounds) for name in ("train", "validation")]
    return Figures(splits, known, special, facts, bounds)


def _split(array: FlatTokensArray, facts: dict[str, Any], bounds: Bounds) -> SplitFigures:
    ids, id_counts = _frequencies(array, bounds.tokens)
    return SplitFigures(
        array.name,
        array.token_count,
        array.seq_count,
        _lengths(array, bounds.lengths),
        ids,
        id_counts,
        _shown(array, bounds.sequences, bounds.shown_tokens),
        facts,
    )


def spread(total: int, size: int, limit: int) -> list[tuple[int, int]]:
    """Ranges [start, stop) of `size`, at most `limit` together, spread evenly over [0, total) at multiples of size.

    10, 2, 4 -> [(0, 2), (8, 10)]; all of it, in such ranges, if limit allows."""
    cells = -(-total // size)
    wanted = cells if total <= limit else max(limit // size, 1)
    chosen = (
        range(cells)
        if wanted >= cells
        else [place * (cells - 1) // max(wanted - 1, 1) for place in range(wanted)]
    )
    return [(cell * size, min((cell + 1) * size, total)) for cell in chosen]


def _lengths(array: FlatTokensArray, limit: int) -> Lengths:
    block = min(BLOCK_SEQS, limit)
    parts = [
        np.unique(np.diff(read_starts(array.seq_starts, start, stop)), return_counts=True)
        for start, stop in spread(array.seq_count, block, limit)
    ]
    if not parts:
        return Lengths(np.zeros(0, np.int64), np.zeros(0, np.int64))
    values, places = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    counts = np.bincount(places, np.concatenate([part[1] for part in parts])).astype(np.int64)
    return Lengths(values, counts)


def _frequencies(array: FlatTokensArray, limit: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    run = min(RUN_TOKENS, limit)
    parts = [
        np.unique(decode_ids(array.encoded_tokens.read(start, stop)), return_counts=True)
        for start, stop in spread(array.token_count, run, limit)
    ]
    if not parts:
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    ids, places = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    return ids, np.bincount(places, np.concatenate([part[1] for part in parts])).astype(np.int64)


def _shown(array: FlatTokensArray, count: int, shown_tokens: int) -> list[Shown]:
    shown = []
    for index, _ in spread(array.seq_count, 1, count) if count else []:
        start, stop = read_starts(array.seq_starts, index, index + 1).tolist()
        ids = decode_ids(array.encoded_tokens.read(start, min(stop, start + shown_tokens)))
        shown.append(Shown(index, stop - start, ids.tolist()))
    return shown
