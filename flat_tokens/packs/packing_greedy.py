"""Which sequences share a pack when each is taken in its order: next-fit, planned from seq_starts alone.

A pack takes sequences as long as all of them fit; the first that does not fit begins the next pack. That is a
chain (pack start -> next pack start) which looks sequential, at 0.5 s and more for 10 million sequences in a
Python loop. Here it is cut in lanes of 256 sequences. Where the chain through *any* sequence leaves its lane is
found for all lanes at once, from the last sequence of a lane to its first (`_lane_exits`); then only the lanes
are walked one by one, and the pack starts within them are marked for all lanes at once again. Invariant: the
pack starts are those of `next_fit_plainly` below, for any block size
(tests/flat_tokens/test_packing_greedy.py).

Memory: 8 bytes a pack, and a few blocks of 2^18 sequences while planning.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from flat_tokens.format import Uint64
from flat_tokens.packs.packing_plan import Int64, PackingReport, Pieces, Starts, read_starts, too_long_error

BLOCK_SEQS = 2**18  # the planner's arrays are then 2 MB each and stay in the second-level cache
LANE_SEQS = 256  # with 1,024 lanes a block: numpy's cost per call is spread over enough elements
# Sequences a pack up to which fits are counted by comparing, 0.5 ns each; beyond they are searched, 25 ns.
PROBED_COUNT = 16


class GreedyPlan:
    """Packs of whole sequences in the dataset's order: each takes what fits.

    bounds: uint64[packs + 1], pack i holds the tokens [bounds[i], bounds[i + 1])."""

    def __init__(self, seq_starts: Starts, max_seq_len: int, max_packs: int | None) -> None:
        self.bounds, self._seq_stop = plan_greedy(seq_starts, max_seq_len, max_packs)
        self._seq_count = len(seq_starts) - 1
        self._token_count = int(seq_starts.read(self._seq_count, self._seq_count + 1)[0])
        self._max_seq_len = max_seq_len

    @property
    def pack_count(self) -> int:
        """How many packs there are."""
        return len(self.bounds) - 1

    def window_bounds(self) -> Int64:
        """Each pack by itself."""
        return np.arange(self.pack_count + 1)

    def pieces(self, packs: Int64) -> Pieces:
        """One range each: the sequences of a pack lie side by side."""
        bounds = self.bounds.view(np.int64)
        return Pieces(bounds[packs], bounds[packs + 1], np.ones(len(packs), np.int64))

    def skipped(self, packs: Int64) -> Int64:
        """None: sequences are whole."""
        return np.zeros(len(packs), np.int64)

    def report(self) -> PackingReport:
        """The account; nothing is read for it."""
        used = int(self.bounds[-1])
        lost = self._token_count - used
        lost_seqs = self._seq_count - self._seq_stop
        return PackingReport(self.pack_count, self._max_seq_len, used, lost, self._seq_stop, 0, lost_seqs)


def plan_greedy(seq_starts: Starts, max_seq_len: int, max_packs: int | None = None) -> tuple[Uint64, int]:
    """Where the packs begin and the last ends, uint64[packs + 1], and how many sequences they hold, the first ones.

    seq_starts [0, 3, 5, 9], max_seq_len 6 -> [0, 5, 9], 3. One pass over seq_starts. ArgumentError for a sequence
    that fits no pack, if it is reached before max_packs; DatasetError for starts that do not rise."""
    seq_count = len(seq_starts) - 1
    parts: list[Uint64] = []
    pack_count = first = 0
    block_seqs = BLOCK_SEQS
    token_stop = 0
    while first < seq_count and (max_packs is None or pack_count < max_packs):
        stop = min(first + block_seqs, seq_count)
        starts = read_starts(seq_starts, first, stop)
        too_long = np.flatnonzero(np.diff(starts) > max_seq_len)
        whole = int(too_long[0]) if len(too_long) else stop - first
        packs = next_fit(starts[: whole + 1], max_seq_len)
        is_last = len(too_long) > 0 or stop == seq_count
        if not is_last:
            if len(packs) == 1:  # one pack holds the block, and perhaps more
                block_seqs *= 2
                continue
            packs, open_pack = packs[:-1], int(packs[-1])  # the last may take sequences of the next block
            whole = open_pack
        if max_packs is not None and pack_count + len(packs) > max_packs:
            packs, whole = packs[: max_packs - pack_count], int(packs[max_packs - pack_count])
        elif len(too_long) and (max_packs is None or pack_count + len(packs) < max_packs):
            raise too_long_error(
                seq_starts.name, first + whole, int(starts[whole + 1] - starts[whole]), max_seq_len
            )
        parts.append(starts[packs].view(np.uint64))
        pack_count += len(packs)
        token_stop = int(starts[whole])
        first += whole
        block_seqs = BLOCK_SEQS
        if len(too_long):
            break
    bounds = np.empty(pack_count + 1, np.uint64)
    np.concatenate([*parts, np.array([token_stop], np.uint64)], out=bounds)
    return bounds, first


def next_fit(starts: Int64, max_seq_len: int) -> Int64:
    """The first sequence of each pack, of sequences that all fit one.

    starts: int64[n + 1], rising, no step over max_seq_len -> int64[packs]. [0, 3, 5, 9], 6 -> [0, 2]."""
    seq_count = len(starts) - 1
    if seq_count < 1:
        return np.zeros(0, np.int64)
    if int(starts[-1] - starts[0]) * PROBED_COUNT < seq_count * max_seq_len:
        return _next_fit_by_search(starts, max_seq_len)
    fits = _fitting_counts(starts, max_seq_len)
    lane_count = -(-seq_count // LANE_SEQS)
    # [row, lane]: sequence lane * LANE_SEQS + row; what pads the last lane is beyond all sequences and is never reached
    padded = np.ones(lane_count * LANE_SEQS, np.int32)
    padded[:seq_count] = fits
    steps = np.ascontiguousarray(padded.reshape(lane_count, LANE_SEQS).T)
    steps *= (
        steps < np.arange(LANE_SEQS, 0, -1, dtype=np.int32)[:, None]
    )  # 0: the chain leaves the lane from here
    follower = (
        steps * np.int64(lane_count) + np.arange(LANE_SEQS * lane_count).reshape(LANE_SEQS, -1)
    ).ravel()
    exits = _lane_exits(follower, lane_count)
    entries = []
    at = 0
    while at < seq_count:
        lane, row = divmod(at, LANE_SEQS)
        entries.append(row * lane_count + lane)
        leaver = lane * LANE_SEQS + int(exits[row, lane])
        at = leaver + int(fits[leaver]) if leaver < seq_count else seq_count
    marked = np.zeros(LANE_SEQS * lane_count, np.bool_)
    here = np.array(entries)
    while len(here):
        marked[here] = True
        following = follower[here]
        here = following[following != here]
    return np.flatnonzero(marked.reshape(LANE_SEQS, lane_count).T.ravel()[:seq_count])


def _next_fit_by_search(starts: Int64, max_seq_len: int) -> Int64:
    """The same for short sequences, of which many share a pack: 0.5 us a pack, whereas lanes take 40 ns a sequence."""
    values = starts.data
    seq_count = len(starts) - 1
    packs = []
    at, taken = 0, PROBED_COUNT
    while at < seq_count:
        packs.append(at)
        end = values[at] + max_seq_len
        stop = at + 2 * taken
        while stop <= seq_count and values[stop] <= end:
            stop = at + 2 * (stop - at)
        following = bisect_right(values, end, at + 1, min(stop, seq_count + 1)) - 1
        taken = following - at
        at = following
    return np.array(packs)


def _fitting_counts(starts: Int64, max_seq_len: int) -> npt.NDArray[np.int32]:
    """How many sequences a pack holds that begins with this one, for each: int32[n], at least 1."""
    seq_count = len(starts) - 1
    offsets = starts - starts[0]
    if offsets[-1] + max_seq_len < 2**31:
        offsets = offsets.astype(np.int32)
    fits = np.zeros(seq_count, np.uint8)
    for count in range(1, min(PROBED_COUNT, seq_count) + 1):
        fitting = offsets[count:] - offsets[:-count] <= max_seq_len
        if not fitting.any():
            return fits.astype(np.int32)
        fits[: len(fitting)] += fitting
    counts = fits.astype(np.int32)
    unsure = np.flatnonzero(fits == PROBED_COUNT)
    ends = offsets[unsure] + offsets.dtype.type(max_seq_len)
    counts[unsure] = np.searchsorted(offsets, ends, "right") - 1 - unsure
    return counts


def _lane_exits(follower: Int64, lane_count: int) -> npt.NDArray[np.int16]:
    """For each [row, lane] the last row of its lane on the chain that begins there."""
    exits = np.repeat(np.arange(LANE_SEQS, dtype=np.int16), lane_count).reshape(LANE_SEQS, lane_count)
    flat, rows = exits.reshape(-1), follower.reshape(LANE_SEQS, lane_count)
    for row in range(LANE_SEQS - 2, -1, -1):
        exits[row] = flat[rows[row]]
    return exits


def next_fit_plainly(lengths: list[int], max_seq_len: int) -> list[int]:
    """The same in plain words: the specification, for the tests. [3, 2, 4], 6 -> [0, 2]."""
    packs: list[int] = []
    held = max_seq_len
    for index, length in enumerate(lengths):
        if held + length > max_seq_len:
            packs.append(index)
            held = 0
        held += length
    return packs
