"""Packs of sequences in the order of the dataset, so that a pack is one range of tokens."""

from __future__ import annotations

import numpy as np

from flat_tokens.built import native
from flat_tokens.errors import damaged
from flat_tokens.format import Int64
from flat_tokens.packs.plan import PackingReport, Plan, blocks_of, too_long_error
from flat_tokens.sources import sequences_at
from flat_tokens.storage.elements import Elements


class GreedyPlan(Plan):
    """Packs of whole sequences (next-fit): the first sequence that does not fit begins the next pack.

    seq_starts [0, 3, 5, 9], max_seq_len 6 -> packs [0, 5) and [5, 9). Raise ArgumentError for a sequence that fits no
    pack, if it is reached before max_packs, and DatasetError for starts that do not rise.

    Cost: a few ns per sequence. Memory: 8 bytes per pack, and one block of seq_starts.
    """

    is_whole = True

    def __init__(self, seq_starts: Elements, max_seq_len: int, max_packs: int | None) -> None:
        super().__init__(seq_starts, max_seq_len)
        self._bounds, self._seq_stop = self._planned(max_packs)
        self.row_count = len(self._bounds) - 1

    def _planned(self, max_packs: int | None) -> tuple[Int64, int]:
        """Where the packs begin, and the end of the last, int64[packs + 1]; and how many sequences they hold."""
        parts = [np.zeros(min(1, self._seq_count), np.int64)]  # the first token of each pack
        pack_count = len(parts[0])
        first = begin = 0
        for starts in blocks_of(self._seq_starts):
            bounds = np.empty(len(starts) - 1, np.int64)
            new_packs, fitting = native.next_fit(starts, begin, self.length, bounds)
            parts.append(bounds[:new_packs].copy())
            pack_count += new_packs
            if max_packs is not None and pack_count > max_packs:
                kept = np.concatenate(parts)[: max_packs + 1]
                return kept, first + int(np.searchsorted(starts, kept[-1]))
            if fitting < len(bounds):
                length = int(starts[fitting + 1] - starts[fitting])
                raise too_long_error(self._seq_starts.name, first + fitting, length, self.length)
            begin = int(bounds[new_packs - 1]) if new_packs else begin
            first += fitting
        return np.concatenate([*parts, np.array([self._token_count], np.int64)]), first

    def pieces(self, packs: Int64) -> tuple[Int64, Int64, Int64]:
        """See Plan."""
        return self._bounds[packs], self._bounds[packs + 1], np.ones(len(packs), np.int64)

    def report(self) -> PackingReport:
        """See Plan."""
        return self._report(int(self._bounds[-1]), self._seq_stop, 0)


class SplitPlan(Plan):
    """Packs cut from the token stream: pack i has the tokens [i * max_seq_len, (i + 1) * max_seq_len).

    A sequence is cut where a pack is full, so only the last pack is padded, and there is nothing to plan.
    """

    def __init__(self, seq_starts: Elements, max_seq_len: int, max_packs: int | None) -> None:
        super().__init__(seq_starts, max_seq_len)
        packs = -(-self._token_count // max_seq_len)
        self.row_count = packs if max_packs is None else min(packs, max_packs)

    def pieces(self, packs: Int64) -> tuple[Int64, Int64, Int64]:
        """See Plan."""
        starts = packs * self.length
        return starts, np.minimum(starts + self.length, self._token_count), np.ones(len(packs), np.int64)

    def skipped(self, packs: Int64) -> list[int]:
        """How many tokens the first sequence of each pack has before the pack. A binary search in seq_starts."""
        tokens = packs * self.length
        found = self._seq_starts.read_ranges(
            [(at, at + 2) for at in sequences_at(self._seq_starts, tokens).tolist()]
        )
        begins, ends = np.array(found, dtype=np.uint64).astype(np.int64).T
        if ((tokens < begins) | (tokens >= ends)).any():
            raise damaged(self._seq_starts.name, "must rise to the token count", "Verify the dataset.")
        before: list[int] = (tokens - begins).tolist()
        return before

    def report(self) -> PackingReport:
        """See Plan; one pass over seq_starts."""
        used = min(self.row_count * self.length, self._token_count)
        seqs_used = seqs_split = 0
        for starts in blocks_of(self._seq_starts):
            begins, lasts = starts[:-1], starts[1:] - 1
            is_used = begins < used
            seqs_used += int(np.count_nonzero(is_used))
            seqs_split += int(np.count_nonzero(is_used & (begins // self.length != lasts // self.length)))
            if starts[-1] >= used:
                break
        return self._report(used, seqs_used, seqs_split)
