"""Packs with next to no padding: best-fit decreasing, window by window.

Best-fit decreasing takes the sequences of a window by length, the longest first, and puts each into the pack with the
least free space that still takes it. Packs with equal free space are interchangeable, so whole groups are placed at
once: the work depends on the number of different lengths, about 5,000 steps per window, not on the sequences. Equally
long sequences keep the order of the dataset. The packs of a window are in the order of their first sequences.

The plan of a window depends on the window alone. The constructor counts the packs of each window, for which a
histogram of the lengths suffices. Reading pack i therefore costs the plan of one window. The most recent plans are
kept.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.format import Int64
from flat_tokens.order.row_order import counting
from flat_tokens.packs.plan import PackingReport, Plan, blocks_of, read_starts, too_long_error
from flat_tokens.storage.elements import Elements

MAX_PLANNED_SEQS = 2**25  # sequences of the plans that are kept, at 6 bytes each for packs below 2^16 tokens

Unsigned = npt.NDArray[np.unsignedinteger[Any]]


class WindowPlan(NamedTuple):
    """The packs of one window: pack i holds the pieces [bounds[i], bounds[i + 1]) of starts and lengths.

    base: the token position that starts are counted from.
    bounds: unsigned[packs + 1]; starts, lengths: unsigned[pieces]. All have the narrowest type that holds them.
    """

    base: int
    bounds: Unsigned
    starts: Unsigned
    lengths: Unsigned


# (first, items, pack, per_pack): the items [first, first + items), longest first, are placed in the packs from `pack`
# on, `per_pack` in each. Plain tuples are fast; a window has about 5,000.
Placing = tuple[int, int, int, int]


def default_window_seqs(max_seq_len: int) -> int:
    """2^18 sequences; for packs over 2,048 tokens, where there are more different lengths, up to 2^20."""
    return min(max(2**18, 128 << (max_seq_len - 1).bit_length()), 2**20)


class BestFitPlan(Plan):
    """Packs of the sequences of one window each; see Plan.

    split: whether sequences over max_seq_len are cut into full packs and a rest. The rest is packed like a sequence.
    """

    def __init__(
        self, seq_starts: Elements, max_seq_len: int, max_packs: int | None, window_seqs: int, split: bool
    ) -> None:
        super().__init__(seq_starts, max_seq_len)
        self.is_whole = not split
        self._window_seqs = window_seqs
        counts = [0]
        for window, starts in enumerate(blocks_of(seq_starts, window_seqs)):
            if max_packs is not None and counts[-1] >= max_packs:
                break
            lengths = np.diff(starts)
            if not split and lengths.max() > max_seq_len:
                at = int(np.argmax(lengths > max_seq_len))
                index = window * window_seqs + at
                raise too_long_error(seq_starts.name, index, int(lengths[at]), max_seq_len)
            full_packs, rests = np.divmod(lengths, max_seq_len)
            counts.append(counts[-1] + int(full_packs.sum()) + place(*_counted(rests), max_seq_len)[0])
        self._pack_counts: Int64 = np.array(counts)
        self.row_count = counts[-1] if max_packs is None else min(counts[-1], max_packs)
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_window"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        kept = max(1, MAX_PLANNED_SEQS // self._window_seqs)
        self._window = functools.lru_cache(kept)(self._plan_window)

    def window_bounds(self) -> Int64:
        """See Plan."""
        return np.minimum(self._pack_counts, self.row_count)

    def pieces(self, packs: Int64) -> tuple[Int64, Int64, Int64]:
        """See Plan; one range per sequence, in the order of the dataset."""
        windows = np.searchsorted(self._pack_counts, packs, "right") - 1
        counts = np.empty(len(packs), np.int64)
        found = []
        for window in np.unique(windows).tolist():
            plan = self._window(window)
            here = np.flatnonzero(windows == window)
            inside = packs[here] - self._pack_counts[window]
            firsts = plan.bounds[inside].astype(np.int64)
            counts[here] = plan.bounds[inside + 1] - firsts
            found.append((plan, here, firsts))
        before = np.cumsum(counts) - counts
        starts, stops = np.empty((2, int(counts.sum())), np.int64)
        for plan, here, firsts in found:
            nth = counting(counts[here])
            at, to = np.repeat(firsts, counts[here]) + nth, np.repeat(before[here], counts[here]) + nth
            starts[to] = plan.base + plan.starts[at].astype(np.int64)
            stops[to] = starts[to] + plan.lengths[at]
        return starts, stops, counts

    def report(self) -> PackingReport:
        """See Plan; one pass over seq_starts, and the plan of one window if max_packs cuts it."""
        seqs_used = tokens_used = seqs_split = 0
        for window, count in enumerate(np.diff(self.window_bounds()).tolist()):
            starts = self._read(window)
            lengths = np.diff(starts)
            tokens = int(lengths.sum())
            if count < self._pack_counts[window + 1] - self._pack_counts[window]:
                plan = self._window(window)
                stop = int(plan.bounds[count])
                tokens = int(plan.lengths[:stop].sum(dtype=np.int64))
                begins = plan.starts[:stop].astype(np.int64) + plan.base
                lengths = lengths[np.unique(np.searchsorted(starts, begins, "right") - 1)]
            tokens_used += tokens
            seqs_used += len(lengths)
            seqs_split += int(np.count_nonzero(lengths > self.length))
        return self._report(tokens_used, seqs_used, seqs_split)

    def _read(self, window: int) -> Int64:
        first = window * self._window_seqs
        return read_starts(self._seq_starts, first, min(first + self._window_seqs, self._seq_count))

    def _plan_window(self, window: int) -> WindowPlan:
        return plan_window(self._read(window), self.length)


def plan_window(starts: Int64, max_seq_len: int) -> WindowPlan:
    """The packs of the sequences between starts: int64[n + 1].

    [0, 3, 5, 9], max_seq_len 6 -> packs {[0, 3)} and {[3, 5), [5, 9)}: bounds [0, 1, 3].
    """
    full_packs, rests = np.divmod(np.diff(starts), max_seq_len)
    # Longest first. numpy sorts 16-bit integers by radix.
    shortness = (max_seq_len - rests).astype(np.uint16 if max_seq_len < 2**16 else np.int64)
    items = np.argsort(shortness, kind="stable")[: np.count_nonzero(rests)]
    pack_count, placings = place(*_counted(rests), max_seq_len)
    table = np.array(placings, np.int64).reshape(-1, 4)
    group = np.repeat(np.arange(len(table)), table[:, 1])
    packs = table[group, 2] + (np.arange(len(items)) - table[group, 0]) // table[group, 3]
    full_count = int(full_packs.sum())
    full_starts = np.repeat(starts[:-1], full_packs) + counting(full_packs) * max_seq_len
    piece_starts = np.concatenate([starts[1:][items] - rests[items], full_starts])
    lengths = np.concatenate([rests[items], np.full(full_count, max_seq_len)])
    packs = np.concatenate([packs, pack_count + np.arange(full_count)])
    pack_count += full_count
    in_order = np.argsort(piece_starts)
    packs = packs[in_order]
    first_piece = np.empty(pack_count, np.int64)
    first_piece[packs[::-1]] = np.arange(len(packs))[::-1]  # the last write is the first piece
    renamed = np.empty(pack_count, np.int64)
    renamed[np.argsort(first_piece)] = np.arange(pack_count)
    packs = renamed[packs]
    by_pack = in_order[np.argsort(packs, kind="stable")]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(packs, minlength=pack_count))])
    base = int(starts[0])
    return WindowPlan(base, narrow(bounds), narrow(piece_starts[by_pack] - base), narrow(lengths[by_pack]))


def narrow(values: Int64) -> Unsigned:
    """The same in the narrowest unsigned type: uint8 for [0, 255]."""
    return values.astype(np.min_scalar_type(values.max(initial=0)))


def _counted(lengths: Int64) -> tuple[list[int], list[int]]:
    """The different lengths except 0, the greatest first, and their counts. [3, 0, 5, 3] -> [5, 3], [1, 2]."""
    histogram = np.bincount(lengths)
    different = np.flatnonzero(histogram[1:])[::-1] + 1
    return different.tolist(), histogram[different].tolist()


def place(lengths: list[int], counts: list[int], max_seq_len: int) -> tuple[int, list[Placing]]:
    """Best-fit decreasing: the number of packs, and the placings. lengths fall, in [1, max_seq_len].

    Items of 4, 3, 2 into packs of 6, one each -> 2 packs: 4 into pack 0, 3 into pack 1, 2 into pack 0.
    """
    placings: list[Placing] = []
    free: defaultdict[int, list[tuple[int, int]]] = defaultdict(
        list
    )  # free space -> (first pack, packs) that have it
    occupied = 0  # bit n: some pack has free space n; a Python integer, which is searched in 0.1 us
    pack_count = first = 0
    for length, todo in zip(lengths, counts, strict=True):
        while todo:
            enough = occupied >> length
            if enough:
                space = (enough & -enough).bit_length() - 1 + length
                per_pack = (
                    space // length
                )  # what remains is again the least space, so it takes the next item too
                spans = free[space]
                pack, packs = spans.pop()
                needed = -(-todo // per_pack)
                if needed < packs:
                    spans.append((pack + needed, packs - needed))
                    packs = needed
                elif not spans:
                    occupied ^= 1 << space
            else:
                space, per_pack, pack = max_seq_len, max_seq_len // length, pack_count
                packs = -(-todo // per_pack)
                pack_count += packs
            items = min(packs * per_pack, todo)
            placings.append((first, items, pack, per_pack))
            first += items
            todo -= items
            filled, over = divmod(items, per_pack)
            left = space - per_pack * length
            if left and filled:
                free[left].append((pack, filled))
                occupied |= 1 << left
            if over:
                free[space - over * length].append((pack + filled, 1))
                occupied |= 1 << (space - over * length)
    return pack_count, placings
