"""Which tokens are trained: a bit a token in `loss_mask`, beside the tokens (docs/reference/dataset-format.md).

Readers take the bits as booleans, one a token, from the same positions as the tokens: so views, parts, rows and packs
need no rule of their own for them. A dataset without the array trains all of its tokens.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import CONVERT_AGAIN, damaged
from flat_tokens.format import MASK_BITS, MASK_DTYPE, MASK_NAME, Bools
from flat_tokens.storage.chunks import Positions
from flat_tokens.storage.elements import Elements, open_elements
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.places import Place, refuse_link
from flat_tokens.storage.zarr_metadata import ReadMetadata

if TYPE_CHECKING:
    from flat_tokens.rows.reader import TokenRanges

_BOOL = np.dtype(np.bool_)


class MaskElements(Elements):
    """The bits of a packed array, bool[token_count]. packed: uint8, the bits of a byte from the lowest on."""

    def __init__(self, packed: Elements, token_count: int) -> None:
        super().__init__(packed.name, _BOOL, token_count, packed.chunk_elements * MASK_BITS, None)
        self.packed = packed

    def _read_otherwise(self, start: int, out: npt.NDArray[Any]) -> None:
        first, stop = _bytes_of(start, start + len(out))
        bits = np.unpackbits(self.packed.read(first, stop), bitorder="little").view(np.bool_)
        out[:] = bits[start - first * MASK_BITS :][: len(out)]

    @property
    def is_remote(self) -> bool:
        """See Elements."""
        return self.packed.is_remote

    def expecting(
        self, starts: Positions, stops: Positions, at_once: bool = False
    ) -> AbstractContextManager[None]:
        """See Elements."""
        firsts = np.asarray(starts, dtype=np.int64) // MASK_BITS
        return self.packed.expecting(firsts, -(-np.asarray(stops, dtype=np.int64) // MASK_BITS), at_once)


class AllTrained(Elements):
    """The mask of tokens that have none, where others have one."""

    def __init__(self, name: str, token_count: int) -> None:
        super().__init__(name, _BOOL, token_count, 2**18, None)

    def _read_otherwise(self, start: int, out: npt.NDArray[Any]) -> None:
        out[:] = True


def _bytes_of(start: int, stop: int) -> tuple[int, int]:
    return start // MASK_BITS, -(-stop // MASK_BITS)


def open_mask(
    path: Place, name: str, token_count: int, opened: OpenedManifest | None, read: ReadMetadata
) -> MaskElements | None:
    """The loss_mask of the split at `path`, None if it has none. opened, read: see open_elements. DatasetError unless
    it has a bit for each token."""
    folder = path / MASK_NAME
    refuse_link(folder)
    if all(read(folder / file) is None for file in ("zarr.json", ".zarray")):
        return None
    packed = open_elements(f"{name}/{MASK_NAME}", folder, MASK_DTYPE, opened, read=read)
    if len(packed) != -(-token_count // MASK_BITS):
        what = f"must have {-(-token_count // MASK_BITS)} bytes for {token_count} tokens (got {len(packed)})"
        raise damaged(f"{name}/{MASK_NAME}", what, CONVERT_AGAIN)
    return MaskElements(packed, token_count)


def mask_of(array: Any) -> Elements | None:
    """The mask of a split, or of anything that is read like one; None where all tokens are trained."""
    found: Elements | None = getattr(array, "loss_mask", None)
    return found


def put_trained(mask: Elements, ranges: TokenRanges, table: Bools) -> None:
    """Put the bits of the tokens of some rows to where the tokens are in bool[rows, length]; false where no token is.

    Cost: each zarr chunk is decoded once."""
    order = np.argsort(ranges.starts, kind="stable")
    places, columns, starts, stops = (values[order] for values in ranges)
    begins = np.flatnonzero(
        np.append(True, starts[1:] != stops[:-1])[: len(starts)]
    )  # of neighbours read as one
    ends = stops[np.append(begins[1:], len(starts))[: len(begins)] - 1]
    found = mask.read_ranges(list(zip(starts[begins].tolist(), ends.tolist(), strict=True)))
    bits = np.concatenate([np.empty(0, dtype=np.bool_), *found])
    if len(bits) == table.size == len(places) * table.shape[1]:  # rows that are full, each of one stretch
        table[places] = bits.reshape(len(places), table.shape[1])
        return
    table[:] = False
    at = 0
    flat = table.reshape(-1)
    firsts, counts = (places * table.shape[1] + columns).tolist(), (stops - starts).tolist()
    for first, count in zip(firsts, counts, strict=True):
        flat[first : first + count] = bits[at : at + count]
        at += count
