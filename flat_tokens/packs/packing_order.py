"""A shuffled order of packs that reads each zarr chunk and plans each window about once.

Packs of one window share a plan and lie close together in the tokens. So windows stay whole: those that begin within
the same block_packs packs are a block, blocks are permuted with derive_key(seed, 6, epoch), and the packs of each among
themselves, by their places under the permutation with derive_key(seed, 7, epoch). The order follows from the arguments
alone (tests/flat_tokens/test_packing_order.py).
"""

from __future__ import annotations

import numpy as np

from flat_tokens.packs.packing_plan import Int64
from flat_tokens.rows.permutation import derive_key, permute

BLOCK_TOKENS = (
    2**20
)  # decoded, with the zarr chunks that hold only a part of it, less than what is kept of an array
BLOCKS, PACKS = 6, 7


def shuffled_packs(window_bounds: Int64, block_packs: int, seed: int, epoch: int) -> Int64:
    """All packs in a shuffled order: int64[packs].

    window_bounds: int64[windows + 1], window w holds the packs [window_bounds[w], window_bounds[w + 1]).
    Cost: 0.2 us a pack."""
    pack_count = int(window_bounds[-1])
    if not pack_count:
        return np.zeros(0, np.int64)
    different, blocks = np.unique(window_bounds[:-1] // block_packs, return_inverse=True)
    turns = permute(blocks, len(different), derive_key(seed, BLOCKS, epoch))
    turn_of_pack = np.repeat(turns, np.diff(window_bounds))
    places = permute(np.arange(pack_count), pack_count, derive_key(seed, PACKS, epoch))
    return np.lexsort((places, turn_of_pack))
