"""The source file of each sequence, and the sequences in the rows of a batch.

The sequences of a split are in the order of the sources, and the manifest has the number of sequences per source. So
the source of a sequence follows from their cumulative sum. Views of a split ask the split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flat_tokens.errors import CONVERT_AGAIN, ArgumentError, cause, damaged, printable
from flat_tokens.format import Int64
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.manifest import read_manifest, read_sources
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place

if TYPE_CHECKING:
    from flat_tokens.reader import FlatTokensArray

# The counts of each source in the manifest.
SOURCE_COUNTS = ("train_sequences", "train_tokens", "validation_sequences", "validation_tokens")


class SourcePlace(NamedTuple):
    """The origin of a sequence.

    path: its source file, as in the manifest.
    record: its number among the sequences of the split that come from this file, from 0."""

    path: str
    record: int


class RowPart(NamedTuple):
    """A sequence in a row of a batch.

    column: the first column of the targets with a token of it.
    sequence: its number in the split.
    source: its origin."""

    column: int
    sequence: int
    source: SourcePlace


@dataclass(frozen=True)
class StoredSources:
    """The sources of a stored split. The first use reads them, from the list next to the manifest. Methods raise
    DatasetError if the dataset does not record them."""

    root: Place
    split: str
    seq_count: int
    opened: OpenedManifest

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredSources, (self.root, self.split, self.seq_count, self.opened)

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """The origin of each of these sequences, which must be in the split."""
        paths, counts = self.counts()
        stops = np.cumsum(counts)
        sources = np.searchsorted(stops, sequences, side="right")
        records = sequences - (stops - counts)[sources]
        pairs = zip(sources.tolist(), records.tolist(), strict=True)
        return [SourcePlace(paths[source], record) for source, record in pairs]

    def counts(self) -> tuple[list[str], Int64]:
        """The paths of the sources in the order of their sequences, and the number of sequences of each, from 0."""
        return self._read

    @cached_property
    def _read(self) -> tuple[list[str], Int64]:
        where = f"{printable(str(self.root))}/{self.split}"
        with self.opened.reading():
            manifest = read_manifest(self.root)
            sources = None if manifest is None else read_sources(self.root, manifest)
        if sources is None:
            raise damaged(where, "sources are unknown without a manifest", CONVERT_AGAIN)
        try:
            counts = np.array([int(source[f"{self.split}_sequences"]) for source in sources], dtype=np.int64)
            paths = [str(source["path"]) for source in sources]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            what = f"invalid source in the manifest ({cause(error)})"
            raise damaged(where, what, CONVERT_AGAIN) from None
        if not paths:
            raise ArgumentError(f"{where}: the dataset was written without sources. Write it with sources.")
        if int(counts.sum()) != self.seq_count:
            what = f"must have {self.seq_count} sequences in the sources of the manifest (got {counts.sum()})"
            raise damaged(where, what, "Verify the dataset.")
        return paths, counts


class PiecedSources:
    """The sources of ranges [firsts[i], firsts[i] + counts[i]) of the sequences of several splits.

    parts: the sources of the splits. of: int64, the number of the split of each range. The ranges of a split rise."""

    def __init__(self, parts: Sequence[SequenceSources], of: Int64, firsts: Int64, counts: Int64) -> None:
        self._parts, self._of, self._firsts, self._lengths = tuple(parts), of, firsts, counts

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """See StoredSources."""
        stops = np.cumsum(self._lengths)
        ranges = np.searchsorted(stops, sequences, side="right")
        inside = sequences - (stops - self._lengths)[ranges] + self._firsts[ranges]
        found: dict[int, SourcePlace] = {}
        for part in np.unique(self._of[ranges]).tolist():
            here = np.flatnonzero(self._of[ranges] == part)
            found |= dict(zip(here.tolist(), self._parts[part].places_of(inside[here]), strict=True))
        return [found[at] for at in range(len(sequences))]

    def counts(self) -> tuple[list[str], Int64]:
        """See StoredSources."""
        paths: list[str] = []
        counts = []
        for number, part in enumerate(self._parts):
            part_paths, part_counts = part.counts()
            paths += part_paths
            firsts, lengths = self._firsts[self._of == number], self._lengths[self._of == number]
            # The chosen sequences before each sequence of the part rise by 1 within a range and not between two.
            made = np.cumsum(lengths)
            edges = np.stack([firsts, firsts + lengths], axis=1).reshape(-1)
            before = np.stack([made - lengths, made], axis=1).reshape(-1)
            chosen = np.interp(np.cumsum(part_counts), np.append(0, edges), np.append(0, before))
            counts.append(np.diff(chosen, prepend=0).astype(np.int64))
        return paths, np.concatenate(counts)


SequenceSources = StoredSources | PiecedSources


def parts_of_rows(
    array: FlatTokensArray, row_count: int, ranges: tuple[Int64, Int64, Int64, Int64]
) -> list[list[RowPart]]:
    """Return the sequences in each of some rows, in order. ranges: as for `masks.put_trained`."""
    rows, columns, starts, stops = ranges
    firsts, lasts = sequences_at(array.seq_starts, starts), sequences_at(array.seq_starts, stops - 1)
    counts = lasts + 1 - firsts
    of = np.repeat(np.arange(len(rows)), counts)  # the range of each sequence
    sequences = np.arange(counts.sum()) + np.repeat(firsts - np.cumsum(counts) + counts, counts)
    wanted, to = np.unique(sequences, return_inverse=True)
    begins = array.seq_starts.gather(wanted).astype(np.int64)[to]
    first_columns = columns[of] + np.maximum(begins - starts[of], 0)
    sources = array.sources_of(sequences)
    found: list[list[RowPart]] = [[] for _ in range(row_count)]
    for row, *part in zip(
        rows[of].tolist(), first_columns.tolist(), sequences.tolist(), sources, strict=True
    ):
        found[row].append(RowPart(*part))
    return found


def sequences_at(seq_starts: Elements, tokens: Int64) -> Int64:
    """Return the sequences that contain some tokens.

    A binary search for all tokens at once, over the chunks of seq_starts and then within one. On a store the requests
    of each step are sent together.
    """
    chunk = seq_starts.chunk_elements
    low = np.zeros(len(tokens), dtype=np.int64)
    high = np.full(len(tokens), -(-len(seq_starts) // chunk), dtype=np.int64)  # the chunk is in [low, high)
    while len(tokens) and int((high - low).max()) > 1:
        middle = (low + high) // 2
        wanted, to = np.unique(middle, return_inverse=True)
        is_at_most = seq_starts.gather(wanted * chunk).astype(np.int64)[to] <= tokens
        low, high = np.where(is_at_most, middle, low), np.where(is_at_most, high, np.maximum(middle, low + 1))
    found = np.empty(len(tokens), dtype=np.int64)
    for index in np.unique(low).tolist():
        here, first = low == index, index * chunk
        entries = seq_starts.peek(first, min(first + chunk, len(seq_starts))).astype(np.int64)
        found[here] = first + np.searchsorted(entries, tokens[here], side="right") - 1
    return found
