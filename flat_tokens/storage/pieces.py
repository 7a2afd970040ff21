"""Arrays made of ranges of other arrays: several datasets as one, and selected sequences. Nothing is copied.

The chunks of such an array need not match the stored Zarr chunks. Reading it in order still decodes each stored Zarr
chunk once, because the stored arrays cache the last ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.format import Int64
from flat_tokens.storage.elements import Elements, Positions


class Pieces(NamedTuple):
    """Ranges [begins[i], begins[i] + lengths[i]) of the arrays with the numbers of[i]. added[i] is added to the
    elements. All are int64[pieces]."""

    of: Int64
    begins: Int64
    lengths: Int64
    added: Int64


class PiecedElements(Elements):
    """The elements of some pieces of `arrays`, which must be within them. See Elements."""

    def __init__(self, name: str, arrays: Sequence[Elements], pieces: Pieces, largest: int = -1) -> None:
        is_kept = pieces.lengths > 0
        self._arrays = tuple(arrays)
        self._of, self._begins, lengths, self._added = (values[is_kept] for values in pieces)
        self._bounds: Int64 = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        self.is_remote = any(array.is_remote for array in arrays)
        chunk_elements = max(array.chunk_elements for array in arrays)
        super().__init__(name, arrays[0].dtype, int(self._bounds[-1]), chunk_elements, largest)

    def _ranges(self, start: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
        """(number of the array, first element, count, added) of the ranges that make up [start, stop)."""
        if start >= stop:
            return
        at = int(np.searchsorted(self._bounds, start, side="right")) - 1
        while start < stop:
            count = min(stop, int(self._bounds[at + 1])) - start
            first = int(self._begins[at]) + start - int(self._bounds[at])
            yield int(self._of[at]), first, count, int(self._added[at])
            start += count
            at += 1

    def _fill(self, starts: Sequence[int], outs: Sequence[npt.NDArray[Any]]) -> None:
        parts = defaultdict[int, list[tuple[int, npt.NDArray[Any], int]]](list)  # by number of the array
        for start, out in zip(starts, outs, strict=True):
            at = 0
            for of, first, count, added in self._ranges(start, start + len(out)):
                parts[of].append((first, out[at : at + count], added))
                at += count
        for of, own in parts.items():
            self._arrays[of].fill([first for first, _, _ in own], [part for _, part, _ in own])
            for _, part, added in own:
                part += np.array(added, dtype=np.int64).astype(self.dtype)  # a negative number wraps around
        for start, out in zip(starts, outs, strict=True):
            self.check(out, start)

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Elements, for each of the arrays."""
        wanted = defaultdict[int, tuple[list[int], list[int]]](lambda: ([], []))
        for start, stop in zip(starts, stops, strict=True):
            for of, first, count, _ in self._ranges(int(start), min(int(stop), len(self))):
                wanted[of][0].append(first)
                wanted[of][1].append(first + count)
        return entered([self._arrays[of].expecting(*ranges, at_once) for of, ranges in wanted.items()])


@contextmanager
def entered(contexts: Sequence[AbstractContextManager[None]]) -> Iterator[None]:
    """Several contexts as one."""
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield
