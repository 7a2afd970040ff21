"""Arrays of integers that are read on demand: `elements[i]`, `elements[start:stop]`.

`Elements` is the interface. StoredArray is an array of a dataset, PiecedElements one made of ranges of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flat_tokens.arguments import integer, invalid
from flat_tokens.errors import CONVERT_AGAIN, RangeError, damaged
from flat_tokens.format import Int64
from flat_tokens.storage.zarr_metadata import ArrayMetadata

if TYPE_CHECKING:
    from flat_tokens.storage.mapped_stream import MappedStream

Values = npt.NDArray[Any]
Positions = Int64 | Sequence[int]  # of elements in an array


class Elements:
    """An array of integers. Picklable; safe to read from several threads at once.

    elements[i] is an int, with i in [-len, len). elements[start:stop] is a new array, with both ends in [0, len] and
    step 1. Subclasses implement `_fill`.

    chunk_elements: elements that are read together. Chunk `index` begins at index * chunk_elements.
    largest: no element may be greater; -1 for no limit.
    metadata: how the array is stored, None for a view.

    Raise RangeError, an IndexError, for a position outside the array, and DatasetError for damage or an element above
    `largest`.
    """

    metadata: ArrayMetadata | None = None
    is_remote = False  # whether reading takes requests to a store

    def __init__(
        self, name: str, dtype: np.dtype[Any], count: int, chunk_elements: int, largest: int = -1
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.chunk_elements = chunk_elements
        self.largest = largest
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.dtype.name}[{self._count}])"

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            if key.step is not None and integer(f"{self.name}: step of the slice", key.step) != 1:
                raise RangeError(f"{self.name}: step of the slice must be 1 (got {key.step})")
            try:
                start, stop, _ = key.indices(self._count)
            except TypeError:
                raise invalid(self.name, "bounds of a slice must be integers", key) from None
            return self.read(start, max(start, stop))
        index = integer(f"{self.name}: index", key)
        if not -self._count <= index < self._count:
            raise RangeError(f"{self.name}: index must be in [{-self._count}, {self._count}) (got {index})")
        index %= self._count
        return int(self.read(index, index + 1)[0])

    def read(self, start: int, stop: int) -> Values:
        """The elements [start, stop) as a new array. Cost: decodes each Zarr chunk in the range that is not cached."""
        start, stop = integer("start", start), integer("stop", stop)
        self._check_range(start, stop)
        return self.read_ranges(((start, stop),))[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[Values]:
        """The elements of each range [start, stop) within the array, as new arrays. Cost: decodes each Zarr chunk of a
        stored array once, and no further than needed."""
        found = [np.empty(stop - start, dtype=self.dtype) for start, stop in ranges]
        self.fill([start for start, _ in ranges], found)
        return found

    def gather(self, positions: Int64) -> Values:
        """The elements at some positions, which rise. Cost: decodes each Zarr chunk of a stored array once."""
        found = np.empty(len(positions), dtype=self.dtype)
        cuts = [0, *np.flatnonzero(np.diff(positions // self.chunk_elements)) + 1, len(positions)]
        with self.expecting(positions, positions + 1):
            for low, high in pairwise(cuts if len(positions) else ()):
                near = positions[low:high]
                found[low:high] = self.peek(int(near[0]), int(near[-1]) + 1)[near - near[0]]
        return found

    def fill(self, starts: Sequence[int], outs: Sequence[Values]) -> None:
        """Fill outs[i] with the elements from starts[i] on, which must be within the array."""
        stops = [start + len(out) for start, out in zip(starts, outs, strict=True)]
        with self.expecting(starts, stops) if self.is_remote else nullcontext():
            self._fill(starts, outs)

    def _fill(self, starts: Sequence[int], outs: Sequence[Values]) -> None:
        raise NotImplementedError

    def peek(self, start: int, stop: int, is_checked: bool = True) -> Values:
        """The elements [start, stop) within the array, perhaps as a read-only view.

        is_checked: False for callers that compare the elements with `largest` themselves."""
        return self.read(start, stop)

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """A context in which one thread reads the elements [starts[i], stops[i]), about in this order.

        On a store several requests are in flight then; at_once sends the first of them before the context is entered.
        An inner context has no effect. In a folder the last shard stays open, and the dataset is compared with the
        opened one at the end.
        """
        return nullcontext()

    def stream(self) -> MappedStream | None:
        """All elements as one mapped array, None if they cannot be mapped."""
        return None

    def load_chunk(self, index: int, scratch: Values, stop: int | None = None) -> Values:
        """The elements of chunk `index`, without the cache, for callers that read each chunk once, within `expecting`.

        scratch: memory of chunk_elements for the result. The result must not be written.
        stop: number of elements that are needed; only these are checked, and the result may end there or later."""
        first = index * self.chunk_elements
        values = scratch[: self._count - first]
        self.fill((first,), (values,))
        return values

    def check(self, values: Values, first: int) -> None:
        """Raise DatasetError if an element is above `largest`. first: position of values[0]. 0.1 ns per element."""
        check_largest(values, self.largest, self.metadata or self.name, first)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, Values]]:
        """(position, elements) of [start, stop), chunk by chunk. They must not be written."""
        self._check_range(start, stop)
        chunk = self.chunk_elements
        with self.expecting((start,), (stop,)) if self.is_remote else nullcontext():
            for first in range(start - start % chunk, stop, chunk):
                low = max(start, first)
                yield low, self.peek(low, min(stop, first + chunk))

    def _check_range(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self._count:
            raise RangeError(f"{self.name}: range must be within [0, {self._count}) (got [{start}, {stop}))")


def check_largest(values: Values, largest: int, where: str | ArrayMetadata, first: int) -> None:
    """Raise DatasetError if an encoded token is above `largest`, which is 2 * max_token_id + 1.

    where: a name, or the array, to name its file. first: position of values[0]."""
    if largest < 0 or not len(values) or int(np.maximum.reduce(values)) <= largest:
        return
    at = int(values.argmax())
    if isinstance(where, ArrayMetadata):
        where = where.file_name((first + at) // where.shard_elements)
    what = f"ID of token {first + at} must be at most max_token_id = {largest >> 1} (got {values[at] >> 1})"
    raise damaged(where, what, CONVERT_AGAIN)
