"""Loss masks: which tokens contribute to the loss (docs/reference/dataset-format.md).

The root group `loss_mask` has an array of bits per split. Readers see bools, one per token, at the positions of the
tokens. A dataset without masks trains all of its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import CONVERT_AGAIN, damaged
from flat_tokens.format import MASK_BITS, Bools, Int64
from flat_tokens.storage.elements import Elements, Positions

_BOOL = np.dtype(np.bool_)


class MaskElements(Elements):
    """The bits of `packed`, uint8, as bool[token_count], lowest bit first. Raise DatasetError unless there is one per
    token."""

    def __init__(self, packed: Elements, token_count: int) -> None:
        expected = -(-token_count // MASK_BITS)
        if len(packed) != expected:
            what = f"must have {expected} bytes for {token_count} tokens (got {len(packed)})"
            raise damaged(packed.name, what, CONVERT_AGAIN)
        super().__init__(packed.name, _BOOL, token_count, packed.chunk_elements * MASK_BITS)
        self.packed = packed
        self.is_remote = packed.is_remote

    def _fill(self, starts: Sequence[int], outs: Sequence[npt.NDArray[Any]]) -> None:
        ends = zip(starts, (start + len(out) for start, out in zip(starts, outs, strict=True)), strict=True)
        packed = self.packed.read_ranges(
            [(start // MASK_BITS, -(-stop // MASK_BITS)) for start, stop in ends]
        )
        for start, out, found in zip(starts, outs, packed, strict=True):
            bits = np.unpackbits(found, bitorder="little").view(np.bool_)
            out[:] = bits[start % MASK_BITS :][: len(out)]

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Elements."""
        firsts = np.asarray(starts, dtype=np.int64) // MASK_BITS
        return self.packed.expecting(firsts, -(-np.asarray(stops, dtype=np.int64) // MASK_BITS), at_once)


class AllTrained(Elements):
    """The mask of a split without one, next to splits that have masks."""

    def __init__(self, name: str, token_count: int) -> None:
        super().__init__(name, _BOOL, token_count, 2**18)

    def _fill(self, starts: Sequence[int], outs: Sequence[npt.NDArray[Any]]) -> None:
        for out in outs:
            out[:] = True


def put_trained(mask: Elements, ranges: tuple[Int64, Int64, Int64, Int64], table: Bools) -> None:
    """Fill the bool[rows, length] table with the mask of some rows; False outside their tokens.

    ranges: (rows, columns, starts, stops). Tokens [starts[i], stops[i]) are in row rows[i], from columns[i] on. Cost:
    decodes each Zarr chunk once."""
    order = np.argsort(ranges[2], kind="stable")
    rows, columns, starts, stops = (values[order] for values in ranges)
    begins = np.flatnonzero(
        np.append(True, starts[1:] != stops[:-1])[: len(starts)]
    )  # of ranges that are read as one
    ends = stops[np.append(begins[1:], len(starts))[: len(begins)] - 1]
    found = mask.read_ranges(list(zip(starts[begins].tolist(), ends.tolist(), strict=True)))
    bits = np.concatenate([np.empty(0, dtype=np.bool_), *found])
    if len(bits) == table.size == len(rows) * table.shape[1]:  # full rows of one range each
        table[rows] = bits.reshape(len(rows), table.shape[1])
        return
    table[:] = False
    flat, at = table.reshape(-1), 0
    firsts, counts = (rows * table.shape[1] + columns).tolist(), (stops - starts).tolist()
    for first, count in zip(firsts, counts, strict=True):
        flat[first : first + count] = bits[at : at + count]
        at += count
