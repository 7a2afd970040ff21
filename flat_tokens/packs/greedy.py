"""Packs of whole sequences in order (next-fit): a pack takes sequences as long as they fit.

The first sequence that does not fit begins the next pack. Cost: a few ns per sequence. Memory: 8 bytes per pack, and
one block of seq_starts.
"""

from __future__ import annotations

import itertools

import numpy as np

from flat_tokens.built import core
from flat_tokens.format import Int64
from flat_tokens.packs.plan import PackingReport, Pieces, Plan, blocks_of, too_long_error
from flat_tokens.storage.elements import Elements


class GreedyPlan(Plan):
    """Packs of whole sequences in the order of the dataset; see Plan."""

    def __init__(self, seq_starts: Elements, max_seq_len: int, max_packs: int | None) -> None:
        super().__init__(seq_starts, max_seq_len)
        self._bounds, self._seq_stop = plan_greedy(seq_starts, max_seq_len, max_packs)
        self.pack_count = len(self._bounds) - 1

    def pieces(self, packs: Int64) -> Pieces:
        """See Plan; one range per pack, since its sequences are neighbours."""
        return Pieces(self._bounds[packs], self._bounds[packs + 1], np.ones(len(packs), np.int64))

    def report(self) -> PackingReport:
        """See Plan."""
        return self._report(int(self._bounds[-1]), self._seq_stop, 0)


def plan_greedy(seq_starts: Elements, max_seq_len: int, max_packs: int | None = None) -> tuple[Int64, int]:
    """Where the packs begin, and the end of the last, int64[packs + 1]; and how many sequences they hold.

    seq_starts [0, 3, 5, 9], max_seq_len 6 -> [0, 5, 9], 3. Raise ArgumentError for a sequence that fits no pack, if it
    is reached before max_packs, and DatasetError for starts that do not rise.
    """
    fit = next_fit if core is None else core.next_fit
    parts = [np.zeros(min(1, len(seq_starts) - 1), np.int64)]  # the first token of each pack
    pack_count = len(parts[0])
    first = begin = token_stop = 0
    for starts in blocks_of(seq_starts):
        bounds = np.empty(len(starts) - 1, np.int64)
        new_packs, fitting = fit(starts, begin, max_seq_len, bounds)
        parts.append(bounds[:new_packs].copy())
        pack_count += new_packs
        if max_packs is not None and pack_count > max_packs:
            kept = np.concatenate(parts)[: max_packs + 1]
            return kept, first + int(np.searchsorted(starts, kept[-1]))
        if fitting < len(bounds):
            length = int(starts[fitting + 1] - starts[fitting])
            raise too_long_error(seq_starts.name, first + fitting, length, max_seq_len)
        begin = int(bounds[new_packs - 1]) if new_packs else begin
        first += fitting
        token_stop = int(starts[-1])
    return np.concatenate([*parts, np.array([token_stop], np.int64)]), first


def next_fit(starts: Int64, begin: int, max_seq_len: int, bounds: Int64) -> tuple[int, int]:
    """Write the first token of each new pack to `bounds`. Return how many there are, and how many sequences fit packs.

    starts: int64[n + 1], rising; the sequences continue the pack that begins at token `begin`.
    bounds: int64[n].

    [0, 3, 5, 9], 0, 6 -> bounds [5], and (1, 3). A sequence that is too long ends the pack before it, and planning.
    """
    packs, offsets = 0, starts.tolist()
    for index, (start, stop) in enumerate(itertools.pairwise(offsets)):
        if stop - begin > max_seq_len:
            if begin != start:
                bounds[packs] = begin = start
                packs += 1
            if stop - start > max_seq_len:
                return packs, index
    return packs, len(offsets) - 1
