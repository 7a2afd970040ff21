"""One split of a dataset: its sequences, and rows of its token stream, at random or in order."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens import format as flat_format
from flat_tokens.arguments import integer, integers
from flat_tokens.built import core
from flat_tokens.errors import CONVERT_AGAIN, DatasetError, RangeError, damaged, printable
from flat_tokens.format import Bools, Int64, Uint32
from flat_tokens.masks import MaskElements
from flat_tokens.sources import SequenceSources, SourcePlace, StoredSources
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.files import refuse_link
from flat_tokens.storage.nodes import read_array, read_group
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place
from flat_tokens.storage.stored_array import StoredArray
from flat_tokens.storage.zarr_metadata import ArrayMetadata

_ONE = np.uint32(1)


class Row(NamedTuple):
    """One or several rows of the packed stream: `ids, is_start = array.row(5, length=1024)`.

    ids: uint32[length] or uint32[rows, length].
    is_start: bool of the same shape, true where a sequence starts."""

    ids: Uint32
    is_start: Bools


class FlatTokensArray:
    """One split of a dataset, all sequences concatenated. Picklable, and safe to read from several threads.

    token_count, seq_count: number of tokens and sequences.
    max_token_id: no ID is greater.
    encoded_tokens, seq_starts: the stored arrays (docs/reference/dataset-format.md). They are indexed and sliced like
        one-dimensional numpy arrays, and read on demand.
    loss_mask: likewise, a bool per token: True if the token contributes to the loss. None if all tokens do.
    """

    def __init__(
        self,
        path: Place,
        name: str,
        encoded_tokens: Elements,
        seq_starts: Elements,
        max_token_id: int,
        sources: SequenceSources,
        loss_mask: Elements | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.max_token_id = max_token_id
        self.encoded_tokens = encoded_tokens
        self.seq_starts = seq_starts
        self.token_count = len(encoded_tokens)
        self.seq_count = len(seq_starts) - 1
        self.sequence_sources = sources
        self.loss_mask = loss_mask

    def check_ends(self) -> None:
        """Raise DatasetError unless the first and last start are 0 and the token count."""
        first, last = self.seq_starts[0], self.seq_starts[-1]
        if first != 0 or last != self.token_count:
            what = f"first and last must be 0 and the token count {self.token_count} (got {first} and {last})"
            raise damaged(f"{self.path}/{flat_format.STARTS_NAME}", what, CONVERT_AGAIN)

    def __len__(self) -> int:
        return self.seq_count

    def __repr__(self) -> str:
        sizes = f"{self.seq_count} sequences, {self.token_count} tokens"
        return f"<{self.name}: {sizes}, ids up to {self.max_token_id}>"

    def sequence(self, index: int) -> Uint32:
        """The IDs of one sequence, uint32[tokens]. index: in [-seq_count, seq_count). Two reads.

        In the example of the format page, sequence(1) and sequence(-2) are [3, 4, 5]. Raise RangeError, an IndexError,
        for another index, and DatasetError for starts that do not increase or an ID above max_token_id."""
        start, stop = self.sequence_range(index)
        return _decoded(self.encoded_tokens, start, stop)

    def sequences(self, indices: npt.ArrayLike) -> list[Uint32]:
        """The IDs of some sequences in the order of `indices`, one array each: [2, 0] -> [[6, 7, 8], [1, 2]].

        Cost: as for each sequence, but every Zarr chunk is decoded only once. Errors as `sequence`."""
        numbers = self._numbers(indices).tolist()
        edges = self.seq_starts.read_ranges([(number, number + 2) for number in numbers])
        ranges = [(start, stop) for start, stop in map(np.ndarray.tolist, edges)]
        for number, (start, stop) in zip(numbers, ranges, strict=True):
            if not start < stop <= self.token_count:
                raise self._wrong_start(number, start, stop)
        return [encoded >> _ONE for encoded in self.encoded_tokens.read_ranges(ranges)]

    def iter_sequences(self, start: int = 0, stop: int | None = None) -> Iterator[Uint32]:
        """Yield the IDs of the sequences [start, stop). stop: may be past the last one."""
        start = integer("start", start, 0)
        stop = None if stop is None else integer("stop", stop)
        for index in range(start, self.seq_count if stop is None else min(stop, self.seq_count)):
            yield self.sequence(index)

    def __iter__(self) -> Iterator[Uint32]:
        return self.iter_sequences()

    def __getitem__(self, index: int) -> Uint32:
        return self.sequence(index)

    def sequence_range(self, index: int) -> tuple[int, int]:
        """The offsets [start, stop) of a sequence. index and errors: as for `sequence`. One read."""
        index = integer("index of a sequence", index)
        if not -self.seq_count <= index < self.seq_count:
            raise self._wrong_index(index)
        index %= self.seq_count
        start, stop = self.seq_starts.peek(index, index + 2).tolist()
        if not start < stop <= self.token_count:
            raise self._wrong_start(index, start, stop)
        return start, stop

    def _wrong_index(self, index: int) -> RangeError:
        count = self.seq_count
        return RangeError(f"{self.name}: index of a sequence must be in [{-count}, {count}) (got {index})")

    def _wrong_start(self, index: int, start: int, stop: int) -> DatasetError:
        what = f"must be in ({start}, {self.token_count}] (got {stop})"
        return damaged(f"{self.seq_starts.name}[{index + 1}]", what, CONVERT_AGAIN)

    def _numbers(self, indices: npt.ArrayLike) -> Int64:
        """Indices of sequences as numbers from 0."""
        numbers = indices_of(indices)
        outside = numbers[(numbers < -self.seq_count) | (numbers >= self.seq_count)]
        if len(outside):
            raise self._wrong_index(outside[0])
        return np.where(numbers < 0, numbers + self.seq_count, numbers)

    def trained_of(self, sequence: int) -> Bools:
        """Which tokens of a sequence contribute to the loss, bool[tokens]."""
        start, stop = self.sequence_range(sequence)
        if self.loss_mask is None:
            return np.ones(stop - start, dtype=np.bool_)
        found: Bools = self.loss_mask.read(start, stop)
        return found

    def source_of(self, sequence: int) -> SourcePlace:
        """The origin of a sequence: (path, record). sequence: in [-seq_count, seq_count).

        record is its number among the sequences of the split from this file. The first call reads the list of sources.
        Raise DatasetError if the dataset does not record its sources."""
        return self.sources_of([integer("sequence", sequence)])[0]

    def sources_of(self, sequences: npt.ArrayLike) -> list[SourcePlace]:
        """The origins of some sequences, in the given order. See `source_of`."""
        return self.sequence_sources.places_of(self._numbers(sequences))

    def row_count(self, length: int) -> int:
        """The number of full rows of `length` tokens, without the tail."""
        return self.token_count // integer("length of a row", length, 1)

    def row(self, index: int, length: int) -> Row:
        """The IDs and start flags of a row. index: in [-row_count, row_count). One read.

        In the example, row(1, 3) is ([4, 5, 6], [False, False, True])."""
        first, stop = self.row_range(index, length)
        is_start = np.empty(length, dtype=np.bool_)
        return Row(_decoded(self.encoded_tokens, first, stop, is_start), is_start)

    def rows(self, indices: npt.ArrayLike, length: int) -> Row:
        """The IDs and start flags of some rows in the order of `indices`, each array [rows, length].

        In the example, rows([1, 0], 3) is ([[4, 5, 6], [1, 2, 3]], [[False, False, True], [True, False, True]]). Cost:
        as for each row, but every Zarr chunk is decoded only once."""
        length = integer("length of a row", length, 1)
        firsts = [self.row_range(index, length)[0] for index in indices_of(indices).tolist()]
        encoded = np.empty((len(firsts), length), dtype=flat_format.TOKENS_DTYPE)
        self.encoded_tokens.fill(firsts, list(encoded))
        return Row(encoded >> _ONE, flat_format.decode_start_flags(encoded))

    def inputs_and_targets(self, index: int, length: int) -> tuple[Uint32, Uint32]:
        """The inputs and targets of a model for a row, uint32[length] each. Targets are the IDs. Inputs are the targets
        shifted right by one, with 0 wherever a sequence starts. One read.

        In the example, inputs_and_targets(1, 3) is ([3, 4, 0], [4, 5, 6])."""
        first, stop = self.row_range(index, length)
        encoded = self.encoded_tokens.peek(max(first - 1, 0), stop)
        before = int(encoded[0]) if first else 0
        return flat_format.inputs_and_targets(encoded[first - stop :], before)

    def row_range(self, index: int, length: int) -> tuple[int, int]:
        """The offsets [start, stop) of a row. index: in [-row_count, row_count)."""
        try:
            index, length = operator.index(index), operator.index(length)  # narrow numpy integers wrap around
        except TypeError:
            index, length = integer("index of a row", index), integer("length of a row", length)
        start = index * length
        if start < 0 or length <= 0 or start + length > self.token_count:
            count = self.row_count(length)
            if not -count <= index < count:
                what = f"index of a row of {length} tokens must be in [{-count}, {count}) (got {index})"
                raise RangeError(f"{self.name}: {what}")
            start = index % count * length
        return start, start + length


def _decoded(tokens: Elements, start: int, stop: int, is_start: Bools | None = None) -> Uint32:
    """Return the IDs of the tokens [start, stop), and fill is_start, bool[stop - start], with their start flags."""
    encoded = tokens.peek(start, stop, is_checked=core is None)
    if core is None:
        if is_start is not None:
            is_start[:] = flat_format.decode_start_flags(encoded)
        return encoded >> _ONE
    ids = np.empty(stop - start, dtype=np.uint32)
    if core.decode_ids(encoded, ids, is_start) > tokens.largest:  # one pass instead of three
        tokens.check(encoded, start)
    return ids


def indices_of(values: npt.ArrayLike) -> Int64:
    """Positions as an array. Raise ArgumentError for anything but integers in one dimension."""
    return integers("indices", values).astype(np.int64, copy=False)


def open_split(root: Place, name: str, opened: OpenedManifest) -> FlatTokensArray:
    """Open the split `name` of a dataset by its metadata files. Raise DatasetError for missing or invalid ones."""
    path = root / name
    for folder in (path, root / flat_format.MASK_NAME):
        refuse_link(folder)
    group = read_group(path)
    if group is None:
        raise DatasetError(
            f"{printable(str(path))}: no zarr group here, so this is not a flat-tokens dataset"
        )
    max_token_id = group[1].get(flat_format.MAX_TOKEN_ID_NAME)
    if type(max_token_id) is not int or not 0 <= max_token_id <= flat_format.LARGEST_TOKEN_ID:
        rule = f"attribute {flat_format.MAX_TOKEN_ID_NAME} must be in [0, {flat_format.LARGEST_TOKEN_ID}]"
        raise DatasetError(f"{printable(str(path))}: {rule} (got {printable(repr(max_token_id), 60)})")
    arrays = {array: read_array(root / flat_format.array_folder(name, array)) for array in flat_format.DTYPES}
    split = split_of(root, name, opened, max_token_id, arrays)
    split.check_ends()
    return split


def split_of(
    root: Place,
    name: str,
    opened: OpenedManifest,
    max_token_id: int,
    arrays: Mapping[str, ArrayMetadata | None],
) -> FlatTokensArray:
    """The split with some stored arrays, by their names; the loss mask may be missing. Raise DatasetError for a missing
    one, another data type, or a loss mask of another length."""
    stored: dict[str, StoredArray] = {}
    for array, dtype in flat_format.DTYPES.items():
        folder, metadata = flat_format.array_folder(name, array), arrays.get(array)
        if metadata is not None:
            if metadata.dtype != dtype.str:
                raise DatasetError(
                    f"{folder}: data type must be {dtype.name} in flat-tokens (got {metadata.dtype})"
                )
            largest = 2 * max_token_id + 1 if array == flat_format.TOKENS_NAME else -1
            stored[array] = StoredArray(folder, metadata, opened, largest)
        elif array != flat_format.MASK_NAME:
            raise damaged(root / folder, "not a zarr array (no .zarray or zarr.json)")
    tokens, starts = stored[flat_format.TOKENS_NAME], stored[flat_format.STARTS_NAME]
    if len(starts) == 0:
        raise damaged(root / starts.name, "must have at least one entry", CONVERT_AGAIN)
    bits = stored.get(flat_format.MASK_NAME)
    mask = None if bits is None else MaskElements(bits, len(tokens))
    sources = StoredSources(root, name, len(starts) - 1, opened)
    return FlatTokensArray(root / name, name, tokens, starts, max_token_id, sources, mask)
