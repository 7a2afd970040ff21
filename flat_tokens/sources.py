"""Where sequences come from: the file of each, and its byte or row there.

seq_places holds a place for each sequence of a split; sequences are in the order of the sources, of which the manifest
says how many each has. So the source of a sequence is found among their sums, and nothing else is stored. Views ask the
splits that they show.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from flat_tokens.errors import CONVERT_AGAIN, cause, damaged, printable
from flat_tokens.format import PLACES_NAME, STARTS_DTYPE
from flat_tokens.storage.chunks import Int64
from flat_tokens.storage.elements import Elements, open_elements
from flat_tokens.storage.manifest import read_manifest
from flat_tokens.storage.opened_manifest import OpenedManifest, opening
from flat_tokens.storage.places import Place, is_there, refuse_link

if TYPE_CHECKING:
    from flat_tokens.reader import FlatTokensArray
    from flat_tokens.rows.reader import TokenRanges

# What the manifest says of each source.
SOURCE_COUNTS = ("train_sequences", "train_tokens", "validation_sequences", "validation_tokens")


class SourcePlace(NamedTuple):
    """Where a document begins. path: of its file, as the manifest has it. record: the number of its row, from 0, None
    for text and JSON Lines; byte: of the text of the file, decompressed, and of the line for JSON Lines; else None."""

    path: str
    record: int | None
    byte: int | None


class RowPart(NamedTuple):
    """A sequence in a row of a batch: from which column of the targets on, its number in the split, and where it is
    from. One that began
    in a row before begins where the row has its first token of it."""

    column: int
    sequence: int
    source: SourcePlace


class SequenceSources(Protocol):
    """Tells where sequences of a split come from."""

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """Of these sequences, which must be in the split. DatasetError where it is not recorded."""
        ...

    def counts(self) -> tuple[list[str], Int64]:
        """The paths of the sources, in the order of the sequences, and how many sequences each has, perhaps none. A
        path may be there more than once. DatasetError where it is not recorded."""
        ...


class _Table(NamedTuple):
    """The sources of a split, in order. stops: the first sequence behind those of each."""

    paths: list[str]
    has_rows: list[bool]
    stops: Int64


class StoredSources:
    """Of a split of `root` that is stored. Nothing is read before it is asked for: the manifest then, with all of its
    sources, which is kept; and of seq_places the zarr chunks that are needed. Picklable."""

    def __init__(self, root: Place, split: str, seq_count: int, opened: OpenedManifest | None) -> None:
        self._root, self._split, self._seq_count, self._opened = root, split, seq_count, opened
        self._table: _Table | None = None
        self._places: Elements | None = None

    def __getstate__(self) -> tuple[Place, str, int, OpenedManifest | None]:
        return self._root, self._split, self._seq_count, self._opened

    def __setstate__(self, state: tuple[Place, str, int, OpenedManifest | None]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """See SequenceSources."""
        if self._places is None:
            self._places = self._open_places()
        paths, has_rows, stops = self._known()
        elements = self._places
        wanted, to = np.unique(sequences, return_inverse=True)
        places = elements.read_ranges([(sequence, sequence + 1) for sequence in wanted.tolist()])
        sources = np.searchsorted(stops, wanted, side="right").tolist()
        found = [
            SourcePlace(paths[source], int(place[0]), None)
            if has_rows[source]
            else SourcePlace(paths[source], None, int(place[0]))
            for source, place in zip(sources, places, strict=True)
        ]
        return [found[number] for number in to.tolist()]

    def counts(self) -> tuple[list[str], Int64]:
        """See SequenceSources. seq_places is not needed."""
        paths, _, stops = self._known()
        return paths, np.diff(stops, prepend=0)

    @property
    def _where(self) -> str:
        return f"{printable(str(self._root))}/{self._split}"

    def _known(self) -> _Table:
        if self._table is None:
            self._table = self._read()
        return self._table

    def _read(self) -> _Table:
        manifest = None
        if self._opened is not None:
            manifest = read_manifest(self._root)
            self._opened.check()
        if manifest is None:
            raise damaged(self._where, "sources are unknown without a manifest", CONVERT_AGAIN)
        try:
            counts = [int(source[f"{self._split}_sequences"]) for source in manifest.sources]
            paths = [str(source["path"]) for source in manifest.sources]
        except (KeyError, TypeError, ValueError) as error:
            what = f"invalid source in the manifest ({cause(error)})"
            raise damaged(self._where, what, CONVERT_AGAIN) from None
        stops = np.cumsum(np.array(counts, dtype=np.int64))
        self._check(int(stops[-1]) if len(stops) else 0, "in the sources of the manifest")
        return _Table(paths, [source.get("place") == "row" for source in manifest.sources], stops)

    def _open_places(self) -> Elements:
        places = open_places(self._root, self._split, self._opened)
        if places is None:
            fix = "This dataset was written without them."
            raise damaged(self._where, f"positions in the sources are unknown without {PLACES_NAME}", fix)
        self._check(len(places), f"in {PLACES_NAME}")
        return places

    def _check(self, count: int, what: str) -> None:
        if count != self._seq_count:
            text = f"must have {self._seq_count} sequences {what} (got {count})"
            raise damaged(self._where, text, "Verify the dataset.")


class JoinedSources:
    """Of splits one behind the other."""

    def __init__(self, parts: Sequence[SequenceSources], seq_counts: Sequence[int]) -> None:
        self._parts = tuple(parts)
        self._stops: Int64 = np.cumsum(np.array(seq_counts, dtype=np.int64))

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """See SequenceSources."""
        of = np.searchsorted(self._stops, sequences, side="right")
        found: list[SourcePlace | None] = [None] * len(sequences)
        for part in np.unique(of).tolist():
            here = np.flatnonzero(of == part)
            first = int(self._stops[part - 1]) if part else 0
            own = self._parts[part].places_of(sequences[here] - first)
            for at, place in zip(here.tolist(), own, strict=True):
                found[at] = place
        return [place for place in found if place is not None]

    def counts(self) -> tuple[list[str], Int64]:
        """See SequenceSources."""
        paths, counts = zip(*(part.counts() for part in self._parts), strict=True)
        return list(itertools.chain(*paths)), np.concatenate(counts)


class SelectedSources:
    """Of runs of sequences of a split: firsts[i], and counts[i] - 1 behind it."""

    def __init__(self, whole: SequenceSources, firsts: Int64, counts: Int64) -> None:
        self._whole = whole
        self._firsts, self._stops = firsts, np.cumsum(counts)
        self._added = firsts - (self._stops - counts)

    def places_of(self, sequences: Int64) -> list[SourcePlace]:
        """See SequenceSources."""
        return self._whole.places_of(
            sequences + self._added[np.searchsorted(self._stops, sequences, side="right")]
        )

    def counts(self) -> tuple[list[str], Int64]:
        """See SequenceSources."""
        paths, counts = self._whole.counts()
        stops = np.cumsum(counts)
        if not len(self._firsts):
            return paths, np.zeros_like(counts)
        # How many of the sequences are in front of where each source ends in the whole split: those of the runs before,
        # and of the run that this end is in, or behind, as far as it goes.
        run = np.maximum(np.searchsorted(self._firsts, stops, side="right") - 1, 0)
        lengths = np.diff(self._stops, prepend=0)
        before = self._stops[run] - lengths[run] + np.clip(stops - self._firsts[run], 0, lengths[run])
        return paths, np.diff(before, prepend=0)


def open_places(root: Place, split: str, opened: OpenedManifest | None) -> Elements | None:
    """The seq_places of a split, None if it has none. opened: see open_elements. DatasetError if they are not of the
    format."""
    path = root / split / PLACES_NAME
    with opening(opened):
        if not any(is_there(path / name) for name in (".zarray", "zarr.json")):
            return None
        refuse_link(path)
        return open_elements(f"{split}/{PLACES_NAME}", path, STARTS_DTYPE, opened)


def parts_of_rows(array: FlatTokensArray, row_count: int, ranges: TokenRanges) -> list[list[RowPart]]:
    """The sequences of each row whose tokens are these, in order."""
    places, columns, starts, stops = ranges
    firsts, lasts = sequences_at(array.seq_starts, starts), sequences_at(array.seq_starts, stops - 1)
    begins = array.seq_starts.read_ranges(list(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True)))
    sequences = [
        np.arange(first, last + 1) for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
    ]
    sources = iter(array.sources_of(np.concatenate([np.empty(0, dtype=np.int64), *sequences])))
    found: list[list[RowPart]] = [[] for _ in range(row_count)]
    for at, (place, column, start) in enumerate(
        zip(places.tolist(), columns.tolist(), starts.tolist(), strict=True)
    ):
        for sequence, begin in zip(sequences[at].tolist(), begins[at].tolist(), strict=True):
            found[place].append(RowPart(column + max(begin - start, 0), sequence, next(sources)))
    return found


def sequences_at(seq_starts: Elements, tokens: Int64) -> Int64:
    """The sequences that tokens of these positions belong to: bisected for all of them at once, first between zarr
    chunks of seq_starts, each step some requests to a store at the same time, then within one."""
    chunk = seq_starts.chunk_elements
    low = np.zeros(len(tokens), dtype=np.int64)
    high = np.full(
        len(tokens), -(-len(seq_starts) // chunk), dtype=np.int64
    )  # the zarr chunk lies in [low, high)
    while len(tokens) and int((high - low).max()) > 1:
        middle = (low + high) // 2
        wanted, to = np.unique(middle, return_inverse=True)
        begins = seq_starts.read_ranges([(index * chunk, index * chunk + 1) for index in wanted.tolist()])
        is_behind = np.concatenate(begins).astype(np.int64)[to] <= tokens
        low, high = np.where(is_behind, middle, low), np.where(is_behind, high, np.maximum(middle, low + 1))
    found = np.empty(len(tokens), dtype=np.int64)
    for index in np.unique(low).tolist():
        here = low == index
        first = index * chunk
        entries = seq_starts.read(first, min(first + chunk, len(seq_starts))).astype(np.int64)
        found[here] = first + np.searchsorted(entries, tokens[here], side="right") - 1
    return found
