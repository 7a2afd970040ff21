"""Arrays that are made of ranges of other arrays, one after the other: the parts of a dataset that grew, the sequences
that a view shows. Nothing is copied; a read is a read of each range that it touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.storage.chunks import Int64, Positions
from flat_tokens.storage.elements import Elements


class Pieces(NamedTuple):
    """Ranges [begins[i], begins[i] + lengths[i]) of the arrays numbered of[i], and what is added to the elements of
    each; int64[pieces] all of them."""

    of: Int64
    begins: Int64
    lengths: Int64
    added: Int64


class PiecedElements(Elements):
    """The elements of pieces of `arrays`. See Elements; no piece may go beyond its array."""

    def __init__(self, name: str, arrays: Sequence[Elements], pieces: Pieces, largest: int | None) -> None:
        kept = pieces.lengths > 0
        self._arrays = tuple(arrays)
        self._of, self._begins, lengths, self._added = (values[kept] for values in pieces)
        self._bounds: Int64 = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        super().__init__(name, arrays[0].dtype, int(self._bounds[-1]), arrays[0].chunk_elements, largest)

    def _ranges(self, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """(array, first element of it, how many, what is added) that [start, stop) is made of."""
        if start >= stop:
            return
        at = int(np.searchsorted(self._bounds, start, side="right")) - 1
        while start < stop:
            count = min(stop, int(self._bounds[at + 1])) - start
            first = int(self._begins[at]) + start - int(self._bounds[at])
            yield int(self._of[at]), first, count, int(self._added[at])
            start += count
            at += 1

    def _read_otherwise(self, start: int, out: npt.NDArray[Any]) -> None:
        at = 0
        with self.expecting((start,), (start + len(out),)):
            for array, first, count, added in self._ranges(start, start + len(out)):
                part = out[at : at + count]
                self._arrays[array].read_into(first, part)
                if added:
                    part += np.array(added, dtype=np.int64).astype(
                        self.dtype
                    )  # below zero it wraps, and back
                at += count

    @property
    def is_remote(self) -> bool:
        """See Elements."""
        return any(array.is_remote for array in self._arrays)

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Elements, for each of the arrays."""
        wanted: dict[int, tuple[list[int], list[int]]] = {}
        for start, stop in zip(starts, stops, strict=True):
            for array, first, count, _ in self._ranges(int(start), min(int(stop), len(self))):
                begins, ends = wanted.setdefault(array, ([], []))
                begins.append(first)
                ends.append(first + count)
        return entered([self._arrays[array].expecting(*ranges, at_once) for array, ranges in wanted.items()])


@contextmanager
def entered(contexts: Sequence[AbstractContextManager[None]]) -> Iterator[None]:
    """Several contexts as one."""
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield
