"""Packs cut from the token stream: a sequence is cut where a pack is full, so only the last pack is padded.

Pack i has the tokens [i * max_seq_len, (i + 1) * max_seq_len), so there is nothing to plan. `skipped` looks up in
seq_starts how many tokens of a cut sequence precede a pack; it keeps one start of every 4,096.
"""

from __future__ import annotations

import numpy as np

from flat_tokens.errors import damaged
from flat_tokens.format import Int64
from flat_tokens.packs.plan import PackingReport, Pieces, Plan, blocks_of, read_starts
from flat_tokens.storage.elements import Elements
from tokenmill.stores.system import cached_property

LANDMARK_SEQS = 4096


class SplitPlan(Plan):
    """Packs of max_seq_len tokens each; see Plan."""

    def __init__(self, seq_starts: Elements, max_seq_len: int, max_packs: int | None) -> None:
        super().__init__(seq_starts, max_seq_len)
        packs = -(-self._token_count // max_seq_len)
        self.pack_count = packs if max_packs is None else min(packs, max_packs)

    def pieces(self, packs: Int64) -> Pieces:
        """See Plan; one range per pack."""
        starts = packs * self._max_seq_len
        stops = np.minimum(starts + self._max_seq_len, self._token_count)
        return Pieces(starts, stops, np.ones(len(packs), np.int64))

    def skipped(self, packs: Int64) -> list[int]:
        """How many tokens the first sequence of each pack has before the pack. The first call reads seq_starts."""
        found = []
        for token in (packs * self._max_seq_len).tolist():
            first = (int(np.searchsorted(self._landmarks, token, "right")) - 1) * LANDMARK_SEQS
            starts = read_starts(self._seq_starts, first, min(first + LANDMARK_SEQS, self._seq_count))
            if not starts[0] <= token < starts[-1]:
                raise damaged(self._seq_starts.name, "changed while it was read", "Open the dataset again.")
            found.append(token - int(starts[np.searchsorted(starts, token, "right") - 1]))
        return found

    @cached_property
    def _landmarks(self) -> Int64:
        """The first token of every LANDMARK_SEQS-th sequence."""
        return np.concatenate([starts[:-1:LANDMARK_SEQS] for starts in blocks_of(self._seq_starts)])

    def report(self) -> PackingReport:
        """See Plan; one pass over seq_starts."""
        size = self._max_seq_len
        used = min(self.pack_count * size, self._token_count)
        seqs_used = seqs_split = 0
        for starts in blocks_of(self._seq_starts):
            begins, lasts = starts[:-1], starts[1:] - 1
            is_used = begins < used
            seqs_used += int(np.count_nonzero(is_used))
            seqs_split += int(np.count_nonzero(is_used & (begins // size != lasts // size)))
            if starts[-1] >= used:
                break
        return self._report(used, seqs_used, seqs_split)
