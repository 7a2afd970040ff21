"""The native loops of flat_tokens. Arrays are contiguous numpy arrays. Wrong sizes and values raise ValueError."""

from typing import Any

import numpy.typing as npt
from typing_extensions import Buffer

Array = npt.NDArray[Any]

def cut_rows(
    encoded: Array, firsts: Array, length: int, start_id: int, inputs: Array, targets: Array, is_start: Array
) -> None:
    """Fill inputs, targets and is_start with rows. The GIL is released.

    encoded: uint32[tokens].
    firsts: int64[rows]; each row has `length` tokens from there on, within `encoded`.
    start_id: input where a sequence starts.
    inputs, targets: integers [rows, length] of 2, 4 or 8 bytes, which must hold every ID and start_id.
    is_start: bool[rows, length].
    """

def cut_labels(
    encoded: Array, firsts: Array, length: int, ignored: int, labels: Array, ids: Array, is_start: Array
) -> None:
    """Fill labels, ids and is_start with unshifted rows. The GIL is released.

    ignored: int32, label where a sequence starts. Other labels are the IDs.
    labels, ids: integers [rows, length] of 4 or 8 bytes.
    encoded, firsts, is_start: as for `cut_rows`.
    """

def decode_ids(encoded: Array, ids: Array, is_start: Array | None) -> int:
    """Fill ids with encoded >> 1 and is_start with encoded & 1. Return the largest of `encoded`, 0 for none.

    encoded, ids: uint32[tokens].
    is_start: bool[tokens], or None.
    """

def find_matches(
    values: Array, shortest: int, block_tokens: int, farthest: int, matches: Array, table: Array
) -> int:
    """Fill `matches` as flat_tokens/native/find_matches.hpp describes. Return their number. The GIL is released.

    values: uint32[n], n below 2^30.
    shortest: tokens per match, 2 or 3.
    block_tokens, farthest: limits on blocks and distances, at least 1.
    matches: uint32[m, 4], m at least n / shortest plus the number of blocks.
    table: uint32[2^14] of any content.
    """

def next_fit(starts: Array, begin: int, max_tokens: int, bounds: Array) -> tuple[int, int]:
    """Plan packs of whole sequences in order (flat_tokens/native/loops.hpp). The GIL is released.

    Return the number of new packs, and how many sequences fit. [0, 3, 5, 9], 0, 6 fills bounds with [5], and returns
    (1, 3).

    starts: int64[n + 1], rising; the sequences continue the pack that begins at token `begin`.
    bounds: int64[n], for the first token of each new pack.
    """

def permute(values: Array, size: int, keys: Array) -> None:
    """Replace values in [0, size) by their images under permutations, in place. The GIL is released.

    values: uint64[n].
    keys: uint64[k], each for n / k values, in order (flat_tokens/order/permutation.py).
    """

class Xxh64:
    """The XXH64 of bytes that come in parts. For one thread at a time."""

    def __init__(self) -> None: ...
    def update(self, data: Buffer) -> None:
        """Add the next bytes. The GIL is released."""
    def digest(self) -> int:
        """Return the hash of all bytes so far. More may follow."""
