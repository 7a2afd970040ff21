"""The source file of each sequence.

The sequences of a split are in the order of the sources, and the manifest has the number of sequences per source. So
the source of a sequence follows from their cumulative sum. Views of a split ask the split.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from flat_tokens.errors import CONVERT_AGAIN, ArgumentError, cause, damaged, printable
from flat_tokens.format import Int64
from flat_tokens.storage.manifest import read_manifest, read_sources
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place

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


class SequenceSources(Protocol):
    """The sources of a split. Methods raise DatasetError if the dataset does not record them."""

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """The origin of each of these sequences, which must be in the split."""
        ...

    def counts(self) -> tuple[list[str], Int64]:
        """The paths of the sources in the order of their sequences, and the number of sequences of each, from 0."""
        ...


class StoredSources:
    """The sources of a stored split. The first use reads them, from the list next to the manifest."""

    def __init__(self, root: Place, split: str, seq_count: int, opened: OpenedManifest | None) -> None:
        self._root, self._split, self._seq_count, self._opened = root, split, seq_count, opened
        self._counts: tuple[list[str], Int64] | None = None

    def __reduce__(self) -> tuple[type[StoredSources], tuple[Place, str, int, OpenedManifest | None]]:
        return StoredSources, (self._root, self._split, self._seq_count, self._opened)

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """See SequenceSources."""
        paths, counts = self.counts()
        stops = np.cumsum(counts)
        sources = np.searchsorted(stops, sequences, side="right")
        records = sequences - (stops - counts)[sources]
        return [
            SourcePlace(paths[source], record)
            for source, record in zip(sources.tolist(), records.tolist(), strict=True)
        ]

    def counts(self) -> tuple[list[str], Int64]:
        """See SequenceSources."""
        if self._counts is None:
            self._counts = self._read()
        return self._counts

    def _read(self) -> tuple[list[str], Int64]:
        where = f"{printable(str(self._root))}/{self._split}"
        manifest = None if self._opened is None else read_manifest(self._root)
        if self._opened is None or manifest is None:
            raise damaged(where, "sources are unknown without a manifest", CONVERT_AGAIN)
        with self._opened.reading():
            sources = read_sources(self._root, manifest)
        try:
            counts = np.array([int(source[f"{self._split}_sequences"]) for source in sources], dtype=np.int64)
            paths = [str(source["path"]) for source in sources]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            what = f"invalid source in the manifest ({cause(error)})"
            raise damaged(where, what, CONVERT_AGAIN) from None
        if not paths:
            raise ArgumentError(f"{where}: the dataset was written without sources. Write it with sources.")
        if int(counts.sum()) != self._seq_count:
            what = (
                f"must have {self._seq_count} sequences in the sources of the manifest (got {counts.sum()})"
            )
            raise damaged(where, what, "Verify the dataset.")
        return paths, counts


class JoinedSources:
    """The sources of several splits, one after the other."""

    def __init__(self, parts: Sequence[SequenceSources], seq_counts: Sequence[int]) -> None:
        self._parts = tuple(parts)
        self._stops: Int64 = np.cumsum(np.array(seq_counts, dtype=np.int64))

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """See SequenceSources."""
        part_of = np.searchsorted(self._stops, sequences, side="right")
        found: dict[int, SourcePlace] = {}
        for part in np.unique(part_of).tolist():
            here = np.flatnonzero(part_of == part)
            first = int(self._stops[part - 1]) if part else 0
            found |= dict(
                zip(here.tolist(), self._parts[part].places_of(sequences[here] - first), strict=True)
            )
        return [found[at] for at in range(len(sequences))]

    def counts(self) -> tuple[list[str], Int64]:
        """See SequenceSources."""
        paths, counts = zip(*(part.counts() for part in self._parts), strict=True)
        return list(itertools.chain(*paths)), np.concatenate(counts)


class SelectedSources:
    """The sources of ranges [firsts[i], firsts[i] + counts[i]) of the sequences of a split."""

    def __init__(self, whole: SequenceSources, firsts: Int64, counts: Int64) -> None:
        self._whole, self._firsts, self._lengths = whole, firsts, counts
        self._stops: Int64 = np.cumsum(counts)

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """See SequenceSources."""
        of = np.searchsorted(self._stops, sequences, side="right")
        return self._whole.places_of(sequences - (self._stops - self._lengths)[of] + self._firsts[of])

    def counts(self) -> tuple[list[str], Int64]:
        """See SequenceSources."""
        paths, counts = self._whole.counts()
        if not len(self._firsts):
            return paths, np.zeros_like(counts)
        # Count the selected sequences before the end of each source: complete ranges, and part of the last one.
        ends = np.cumsum(counts)
        last = np.maximum(np.searchsorted(self._firsts, ends, side="right") - 1, 0)
        lengths = self._lengths[last]
        before = self._stops[last] - lengths + np.clip(ends - self._firsts[last], 0, lengths)
        return paths, np.diff(before, prepend=0)
