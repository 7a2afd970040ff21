"""Packs that are rows of the token stream: sequences are cut where a pack is full, so only the last pack is padded.

Pack i is the tokens [i * max_seq_len, (i + 1) * max_seq_len); there is nothing to plan. What is looked up in
seq_starts is how many tokens of a cut sequence lie in front of a pack: by the first start of every 4,096, read
on the first use.
"""

from __future__ import annotations

import numpy as np

from flat_tokens.errors import damaged
from flat_tokens.packs.packing_plan import Int64, PackingReport, Pieces, Starts, read_starts

LANDMARK_SEQS = 4096  # 8 bytes for each so many sequences are held
BLOCK_SEQS = 2**18


class SplitPlan:
    """Packs of max_seq_len tokens each, whatever begins or ends in them."""

    def __init__(self, seq_starts: Starts, max_seq_len: int, max_packs: int | None) -> None:
        self._seq_starts = seq_starts
        self._max_seq_len = max_seq_len
        self._seq_count = len(seq_starts) - 1
        self._token_count = int(seq_starts.read(self._seq_count, self._seq_count + 1)[0])
        packs = -(-self._token_count // max_seq_len)
        self._pack_count = packs if max_packs is None else min(packs, max_packs)
        self._landmarks: Int64 | None = None

    @property
    def pack_count(self) -> int:
        """How many packs there are."""
        return self._pack_count

    def window_bounds(self) -> Int64:
        """Each pack by itself."""
        return np.arange(self.pack_count + 1)

    def pieces(self, packs: Int64) -> Pieces:
        """One range each."""
        starts = packs * self._max_seq_len
        stops = np.minimum(starts + self._max_seq_len, self._token_count)
        return Pieces(starts, stops, np.ones(len(packs), np.int64))

    def skipped(self, packs: Int64) -> Int64:
        """Cost: a search among 4,096 starts a pack; the first call reads seq_starts once."""
        starts = (packs * self._max_seq_len).tolist()
        return np.array([start - self._seq_start_before(start) for start in starts], np.int64)

    def _seq_start_before(self, token: int) -> int:
        """Where the sequence starts that the token belongs to."""
        if token == 0:
            return 0
        if self._landmarks is None:
            blocks = [
                read_starts(self._seq_starts, first, min(first + BLOCK_SEQS, self._seq_count))[
                    :-1:LANDMARK_SEQS
                ]
                for first in range(0, self._seq_count, BLOCK_SEQS)
            ]
            self._landmarks = np.concatenate(blocks)
        landmark = int(np.searchsorted(self._landmarks, token, "right")) - 1
        first = landmark * LANDMARK_SEQS
        starts = read_starts(self._seq_starts, first, min(first + LANDMARK_SEQS, self._seq_count))
        if not starts[0] <= token < starts[-1]:
            raise damaged(self._seq_starts.name, "changed while it was read", "Open the dataset again.")
        return int(starts[np.searchsorted(starts, token, "right") - 1])

    def report(self) -> PackingReport:
        """The account; one pass over seq_starts."""
        used = min(self._pack_count * self._max_seq_len, self._token_count)
        seqs_used = seqs_split = 0
        for first in range(0, self._seq_count, BLOCK_SEQS):
            starts = read_starts(self._seq_starts, first, min(first + BLOCK_SEQS, self._seq_count))
            if starts[0] >= used:
                break
            heads, lasts = starts[:-1], starts[1:] - 1
            begun = heads < used
            seqs_used += int(np.count_nonzero(begun))
            seqs_split += int(
                np.count_nonzero(begun & (heads // self._max_seq_len != lasts // self._max_seq_len))
            )
        return PackingReport(
            self._pack_count,
            self._max_seq_len,
            used,
            self._token_count - used,
            seqs_used,
            seqs_split,
            self._seq_count - seqs_used,
        )
