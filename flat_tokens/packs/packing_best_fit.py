"""Which sequences share a pack when there shall be next to no padding: best-fit decreasing, window by window.

The sequences of a window are taken by length, the longest first, and each goes into the pack with the least
room that still takes it. Packs with the same room are interchangeable, so whole groups are placed at once: the
work is that of the different lengths (some 5,000 steps a window), not of the sequences. Equally long sequences
go in the dataset's order, and so do the packs of a window, by their first sequences. The plan of a window
depends on the window alone; opening counts the packs of each, for which a histogram of its lengths suffices, so
pack i is found without planning the windows before: resuming anywhere costs the plan of one window. Plans are kept, the
least recently used one is dropped when they take more than LARGEST_PLANS_BYTES, so packs in any order cost the plan of
each window once.

Spec: `best_fit_plainly` below, which leaves the same rooms (tests/flat_tokens/test_packing_best_fit.py).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from flat_tokens.packs.packing_plan import Int64, PackingReport, Pieces, Starts, read_starts, too_long_error

LARGEST_PLANS_BYTES = 2**28  # the plans of 40 million sequences, for packs of less than 2^16 tokens

Unsigned = npt.NDArray[np.unsignedinteger[Any]]


class WindowPlan(NamedTuple):
    """The packs of one window: pack i holds the pieces [bounds[i], bounds[i + 1]) of starts and lengths.

    base: the token position in the dataset that starts are counted from. bounds: uint32[packs + 1]; starts, lengths:
    unsigned[pieces], of the narrowest types that hold them, since plans are kept."""

    base: int
    bounds: Unsigned
    starts: Unsigned
    lengths: Unsigned

    @property
    def kept_bytes(self) -> int:
        """The memory of the plan."""
        return self.bounds.nbytes + self.starts.nbytes + self.lengths.nbytes


# (first, items, pack, per_pack): the items [first, first + items), longest first, go to the packs from `pack` on,
# `per_pack` into each. Plain tuples: some 5,000 a window.
Placing = tuple[int, int, int, int]


def default_window_seqs(max_seq_len: int) -> int:
    """2^18 sequences; for packs over 2,048 tokens, where there are more different lengths, up to 2^20."""
    return min(max(2**18, 128 << (max_seq_len - 1).bit_length()), 2**20)


class BestFitPlan:
    """Packs of sequences of one window each. With `split`, sequences over max_seq_len are cut: full packs, and
    a rest that is packed like any other sequence."""

    def __init__(
        self, seq_starts: Starts, max_seq_len: int, max_packs: int | None, window_seqs: int, split: bool
    ) -> None:
        self._seq_starts = seq_starts
        self._max_seq_len = max_seq_len
        self._window_seqs = window_seqs
        self._seq_count = len(seq_starts) - 1
        counts = [0]
        for window in range(-(-self._seq_count // window_seqs)):
            if max_packs is not None and counts[-1] >= max_packs:
                break
            lengths = np.diff(self._read(window))
            if not split and lengths.max() > max_seq_len:
                at = int(np.argmax(lengths > max_seq_len))
                raise too_long_error(
                    seq_starts.name, window * window_seqs + at, int(lengths[at]), max_seq_len
                )
            full_packs, rests = _full_and_rest(lengths, max_seq_len)
            counts.append(counts[-1] + int(full_packs.sum()) + place(*_counted(rests), max_seq_len)[0])
        self._pack_counts: Int64 = np.array(counts)
        self._pack_count: int = counts[-1] if max_packs is None else min(counts[-1], max_packs)
        self._forget()
        _PLANS.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._windows: OrderedDict[int, WindowPlan] = OrderedDict()  # the longest unused one first
        self._kept_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        own = ("_lock", "_windows", "_kept_bytes")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()
        _PLANS.add(self)

    @property
    def pack_count(self) -> int:
        """How many packs there are."""
        return self._pack_count

    def window_bounds(self) -> Int64:
        """See Plan."""
        return np.minimum(self._pack_counts, self._pack_count)

    def pieces(self, packs: Int64) -> Pieces:
        """A range for each sequence, in the dataset's order. Cost: the plan of each window for its first pack, a
        microsecond for the others."""
        windows = np.searchsorted(self._pack_counts, packs, "right") - 1
        counts = np.empty(len(packs), np.int64)
        found = []
        for window in dict.fromkeys(windows.tolist()):
            plan = self._window(window)
            here = np.flatnonzero(windows == window)
            inside = packs[here] - self._pack_counts[window]
            firsts = plan.bounds[inside].astype(np.int64)
            counts[here] = plan.bounds[inside + 1] - firsts
            found.append((plan, here, firsts))
        before = np.cumsum(counts) - counts
        starts, stops = np.empty((2, int(counts.sum())), np.int64)
        for plan, here, firsts in found:
            nth = np.arange(counts[here].sum()) - np.repeat(
                np.cumsum(counts[here]) - counts[here], counts[here]
            )
            at, to = np.repeat(firsts, counts[here]) + nth, np.repeat(before[here], counts[here]) + nth
            starts[to] = plan.base + plan.starts[at].astype(np.int64)
            stops[to] = starts[to] + plan.lengths[at]
        return Pieces(starts, stops, counts)

    def skipped(self, packs: Int64) -> Int64:
        """None: a piece begins at a multiple of max_seq_len in its sequence."""
        return np.zeros(len(packs), np.int64)

    def report(self) -> PackingReport:
        """The account. Cost: with max_packs the plan of one window, without two reads."""
        seqs_used = tokens_used = seqs_split = 0
        for window in range(len(self._pack_counts) - 1):
            starts = self._read(window)
            if self._pack_counts[window + 1] <= self._pack_count:
                seqs_used += len(starts) - 1
                tokens_used += int(starts[-1] - starts[0])
                seqs_split += int(np.count_nonzero(np.diff(starts) > self._max_seq_len))
                continue
            plan = self._window(window)
            stop = int(plan.bounds[self._pack_count - int(self._pack_counts[window])])
            tokens_used += int(plan.lengths[:stop].sum(dtype=np.int64))
            piece_starts = plan.starts[:stop].astype(np.int64) + plan.base
            touched = np.unique(np.searchsorted(starts, piece_starts, "right") - 1)
            seqs_used += len(touched)
            seqs_split += int(np.count_nonzero(np.diff(starts)[touched] > self._max_seq_len))
        token_count = int(self._seq_starts.read(self._seq_count, self._seq_count + 1)[0])
        return PackingReport(
            self._pack_count,
            self._max_seq_len,
            tokens_used,
            token_count - tokens_used,
            seqs_used,
            seqs_split,
            self._seq_count - seqs_used,
        )

    def _read(self, window: int) -> Int64:
        first = window * self._window_seqs
        return read_starts(self._seq_starts, first, min(first + self._window_seqs, self._seq_count))

    def _window(self, window: int) -> WindowPlan:
        with self._lock:
            plan = self._windows.get(window)
            if plan is not None:
                self._windows.move_to_end(window)
                return plan
        plan = plan_window(self._read(window), self._max_seq_len)
        with self._lock:
            if window not in self._windows:  # another thread may have planned it meanwhile
                self._windows[window] = plan
                self._kept_bytes += plan.kept_bytes
            while self._kept_bytes > LARGEST_PLANS_BYTES and len(self._windows) > 1:
                self._kept_bytes -= self._windows.popitem(last=False)[1].kept_bytes
        return plan


def _full_and_rest(lengths: Int64, max_seq_len: int) -> tuple[Int64, Int64]:
    """How many full packs each sequence gives, and how many tokens are left. [3, 6, 14], 6 -> [0, 1, 2], [3, 0,
    2]."""
    if lengths.max(initial=0) < max_seq_len:
        return np.zeros_like(lengths), lengths
    return np.divmod(lengths, max_seq_len)


def plan_window(starts: Int64, max_seq_len: int) -> WindowPlan:
    """The packs of the sequences between starts: int64[n + 1].

    [0, 3, 5, 9], max_seq_len 6 -> packs {[0, 3)} and {[3, 5), [5, 9)}: bounds [0, 1, 3]."""
    full_packs, rests = _full_and_rest(np.diff(starts), max_seq_len)
    stops = starts[1:]
    # longest first; numpy sorts 16-bit integers by radix, three times as fast
    shortness = (max_seq_len - rests).astype(np.uint16 if max_seq_len < 2**16 else np.int64)
    items = np.argsort(shortness, kind="stable")[: np.count_nonzero(rests)]
    pack_count, placings = place(*_counted(rests), max_seq_len)
    table = np.array(placings, np.int64).reshape(-1, 4)
    group = np.repeat(np.arange(len(table)), table[:, 1])
    packs = table[group, 2] + (np.arange(len(items)) - table[group, 0]) // table[group, 3]
    cut = np.flatnonzero(full_packs)
    if len(cut):
        counts = full_packs[cut]
        nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        full_starts = np.repeat(starts[cut], counts) + nth * max_seq_len
        piece_starts = np.concatenate([stops[items] - rests[items], full_starts])
        lengths = np.concatenate([rests[items], np.full(len(full_starts), max_seq_len)])
        packs = np.concatenate([packs, pack_count + np.arange(len(full_starts))])
        pack_count += len(full_starts)
    else:
        piece_starts, lengths = stops[items] - rests[items], rests[items]
    in_order = np.argsort(piece_starts)
    packs = packs[in_order]
    first_piece = np.empty(pack_count, np.int64)
    first_piece[packs[::-1]] = np.arange(
        len(packs) - 1, -1, -1
    )  # of several the last written stays: the first piece
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
    """The different lengths but 0, the greatest first, and their counts. [3, 0, 5, 3] -> [5, 3], [1, 2]."""
    histogram = np.bincount(lengths)
    different = np.flatnonzero(histogram[1:])[::-1] + 1
    return different.tolist(), histogram[different].tolist()


def place(lengths: list[int], counts: list[int], max_seq_len: int) -> tuple[int, list[Placing]]:
    """Best-fit decreasing: how many packs it takes, and the placings. lengths fall, in [1, max_seq_len].

    Items of 4, 3, 2 into 6, one each -> 2 packs: 4 into pack 0, 3 into pack 1, 2 into pack 0."""
    placings: list[Placing] = []
    # room -> runs of packs (first, count) that have it
    rooms: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    occupied = 0  # bit r: some pack has room r; a Python integer, searched in 0.1 us
    pack_count = first = 0
    for length, todo in zip(lengths, counts, strict=True):
        while todo:
            enough = occupied >> length
            if enough:
                room = (enough & -enough).bit_length() - 1 + length
                per_pack = (
                    room // length
                )  # the room that is left is the least again, so it takes the next one, too
                runs = rooms[room]
                pack, packs = runs.pop()
                needed = -(-todo // per_pack)
                if needed < packs:
                    runs.append((pack + needed, packs - needed))
                    packs = needed
                elif not runs:
                    occupied ^= 1 << room
            else:
                room, per_pack, pack = max_seq_len, max_seq_len // length, pack_count
                packs = -(-todo // per_pack)
                pack_count += packs
            items = packs * per_pack
            if items > todo:
                items = todo
            placings.append((first, items, pack, per_pack))
            first += items
            todo -= items
            filled, over = divmod(items, per_pack)
            left = room - per_pack * length
            if left and filled:
                rooms[left].append((pack, filled))
                occupied |= 1 << left
            if over:
                rooms[room - over * length].append((pack + filled, 1))
                occupied |= 1 << (room - over * length)
    return pack_count, placings


def best_fit_plainly(lengths: list[int], max_seq_len: int) -> list[list[int]]:
    """The same in plain words, the specification, for the tests: the lengths in each pack. [3, 2, 4], 6 -> [[4, 2],
    [3]]."""
    packs: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        fitting = [pack for pack in packs if sum(pack) + length <= max_seq_len]
        if fitting:
            max(fitting, key=sum).append(length)
        else:
            packs.append([length])
    return packs


_PLANS: weakref.WeakSet[BestFitPlan] = weakref.WeakSet()


def _forget_unfinished() -> None:
    """In the child of a fork: plans are kept, but where another thread of the parent was about to change them."""
    for plan in list(_PLANS):
        if plan._lock.locked():
            plan._forget()


os.register_at_fork(after_in_child=_forget_unfinished)
