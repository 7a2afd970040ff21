"""From shards to the dataset's arrays: totals go up a balanced tree, offsets come down, its leaves write.

Each shard is a leaf of the tree with its (tokens, sequences, max id) of a split; every inner node holds the sum of its
two children. On the way down a node gives its left child its own offset, and its right child that plus the left
child's total. So the place of every shard in the arrays is known before a token is moved, and *runs* of the arrays,
aligned to the unit one writer may write alone, can be written by any worker at any time: a run reads the parts of
the shards that lie in it, each token once, and writes it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convert.shard import ShardReader, ShardRecord, ShardShape
from flat_tokens.layout import ArrayLayout
from flat_tokens.manifest import FileRecord
from flat_tokens.writer import write_starts, write_tokens

# 2 Mi tokens: 8 MiB encoded, some 15 ms to compress; far above the cost of a task, and enough runs for many workers.
RUN_TOKENS = 2 << 20


@dataclass(frozen=True)
class Totals:
    """What a part of the shards holds of one split."""

    tokens: int = 0
    sequences: int = 0
    max_token_id: int = 0

    def __add__(self, other: Totals) -> Totals:
        """The totals of both parts together."""
        return Totals(
            self.tokens + other.tokens,
            self.sequences + other.sequences,
            max(self.max_token_id, other.max_token_id),
        )


def totals_up(leaves: Sequence[Totals]) -> list[list[Totals]]:
    """The levels of the tree, leaves first, the root alone at last; a node without a right sibling goes up as it is.

    Three shards of 5, 7 and 1 tokens: [[5, 7, 1], [12, 1], [13]]. No shards: one empty root.
    """
    levels = [list(leaves) or [Totals()]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([sum(below[i : i + 2], Totals()) for i in range(0, len(below), 2)])
    return levels


def offsets_down(levels: Sequence[Sequence[Totals]]) -> list[Totals]:
    """What lies before each leaf: (tokens, sequences) of all leaves to its left. [5, 7, 1] -> [0, 5, 12]."""
    offsets = [Totals()]
    for level in reversed(levels[:-1]):
        offsets = [offsets[i // 2] + level[i - 1] if i % 2 else offsets[i // 2] for i in range(len(level))]
    return offsets


@dataclass(frozen=True)
class Part:
    """Tokens or sequences [start, stop) of one shard; token_offset: the place of its first token in the array."""

    shape: ShardShape
    start: int
    stop: int
    token_offset: int


@dataclass(frozen=True)
class Run:
    """Items [first, first + sum of the parts) of one array of a split. closing: the array's last start, or None."""

    split: str
    array: str  # "tokens" or "starts"
    first: int
    parts: tuple[Part, ...]
    closing: int | None = None

    def describe(self) -> str:
        """For errors and progress."""
        return f"{self.split} {self.array} from {self.first}"

    @property
    def item_count(self) -> int:
        """How many items the run has, the closing start included."""
        return sum(part.stop - part.start for part in self.parts) + (self.closing is not None)

    @property
    def raw_bytes(self) -> int:
        """How many bytes the run has before compression, for progress."""
        return self.item_count * (4 if self.array == "tokens" else 8)


def plan_split(split: str, records: Sequence[ShardRecord], layout: ArrayLayout) -> tuple[Totals, list[Run]]:
    """The totals of a split and the runs that write it, of about RUN_TOKENS in whole write units."""
    leaves = [
        Totals(counts.tokens, counts.sequences, counts.max_token_id)
        for counts in (record.split(split) for record in records)
    ]
    levels = totals_up(leaves)
    offsets = offsets_down(levels)
    total = levels[-1][0]
    shapes = [record.shape for record in records]

    def runs(array: str, sizes: list[int], places: list[int], unit: int) -> Iterator[Run]:
        run_items = max(1, RUN_TOKENS // unit) * unit
        item_count = sum(sizes) + (array == "starts")
        shard = 0
        for first in range(0, item_count, run_items):
            stop = min(first + run_items, item_count)
            parts = []
            while shard < len(sizes) and places[shard] + sizes[shard] <= first:
                shard += 1
            for k in range(shard, len(sizes)):
                if places[k] >= stop:
                    break
                begin, end = max(first, places[k]), min(stop, places[k] + sizes[k])
                if begin < end:
                    parts.append(Part(shapes[k], begin - places[k], end - places[k], offsets[k].tokens))
            closing = total.tokens if array == "starts" and stop == item_count else None
            yield Run(split, array, first, tuple(parts), closing)

    token_runs = runs(
        "tokens", [t.tokens for t in leaves], [o.tokens for o in offsets], layout.write_unit_tokens
    )
    start_runs = runs(
        "starts", [t.sequences for t in leaves], [o.sequences for o in offsets], layout.write_unit_starts
    )
    return total, [*token_runs, *start_runs]


def write_run(root: Path, shards: Path, layout: ArrayLayout, run: Run) -> list[FileRecord]:
    """Write one run of a split's array into the dataset at `root`; the records of the files written."""
    if run.array == "tokens":
        return write_tokens(root, run.split, layout, run.first, encoded_run(shards, run))
    return write_starts(root, run.split, layout, run.first, starts_run(shards, run))


def encoded_run(shards: Path, run: Run) -> NDArray[np.uint32]:
    """The tokens of a run as `id * 2 + 1` at sequence starts and `id * 2` elsewhere: uint32[run.item_count]."""
    encoded = np.empty(run.item_count, dtype=np.uint32)
    filled = 0
    for part in run.parts:
        out = encoded[filled : filled + part.stop - part.start]
        with ShardReader(shards, part.shape) as reader:
            np.left_shift(reader.tokens(run.split, part.start, part.stop), 1, out=out, dtype=np.uint32)
            starts = reader.starts_within(run.split, part.start, part.stop)
        out[starts - np.uint64(part.start)] += np.uint32(1)
        filled += len(out)
    return encoded


def starts_run(shards: Path, run: Run) -> NDArray[np.uint64]:
    """The sequence starts of a run, from the array's first token: uint64[run.item_count]."""
    starts = np.empty(run.item_count, dtype=np.uint64)
    filled = 0
    for part in run.parts:
        with ShardReader(shards, part.shape) as reader:
            own = reader.starts(run.split, part.start, part.stop)
        np.add(own, np.uint64(part.token_offset), out=starts[filled : filled + len(own)])
        filled += len(own)
    if run.closing is not None:
        starts[filled] = run.closing
    return starts
