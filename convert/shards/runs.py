"""Runs of the dataset's arrays: which slices of shards each is made of, known as soon as those shards are.

A run is a stretch of an array aligned to the unit that one writer may write alone, so any worker can write it at any
time; it reads the parts of the shards that lie in it, each token once, and writes it once. Runs are given out while
other shards are still being encoded: then a shard's ids are read while they are in memory, and go before the next
shards need room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from convert.shards.merge_tree import MergeTree
from convert.shards.shard import STARTS_OF, ShardRecord, ShardShape

# 2 Mi tokens: 8 MiB encoded, some 15 ms to compress; far above the cost of a task, and enough runs for many workers.
RUN_TOKENS = 2 << 20
ARRAYS = ("tokens", "starts")


class ShardSlice(NamedTuple):
    """Tokens or sequences [start, stop) of one shard; token_offset: the place of its first token in the array.

    shape: with the digests that the slice needs (`ShardShape.for_slice`).
    """

    shape: ShardShape
    start: int
    stop: int
    token_offset: int


class Run(NamedTuple):
    """Items [first, first + sum of the slices) of one array of a split. closing: the array's last start, or None."""

    split: str
    array: str  # one of ARRAYS
    first: int
    slices: tuple[ShardSlice, ...]
    closing: int | None = None

    def describe(self) -> str:
        """For errors and progress."""
        return f"{self.split} {self.array} from {self.first}"

    @property
    def reads(self) -> tuple[str, ...]:
        """Which parts of its shards the run reads: ids get their start flags by the starts."""
        starts = STARTS_OF[self.split]
        return (self.split, starts) if self.array == "tokens" else (starts,)

    @property
    def item_count(self) -> int:
        """How many items the run has, the closing start included."""
        return sum(own.stop - own.start for own in self.slices) + (self.closing is not None)

    @property
    def raw_bytes(self) -> int:
        """How many bytes the run has before compression, for progress."""
        return self.item_count * (4 if self.array == "tokens" else 8)


class RunPlanner:
    """The runs of one array of a split, about RUN_TOKENS in whole units, in order and each once.

    chunks: the shards of each text chunk so far; tree: the split's totals, to which chunks are added.
    """

    def __init__(
        self, split: str, array: str, unit: int, tree: MergeTree, chunks: Sequence[Sequence[ShardRecord]]
    ) -> None:
        self.split, self.array = split, array
        self._run_items = max(1, RUN_TOKENS // unit) * unit
        self._tree, self._chunks = tree, chunks
        self._chunk = self._shard = 0  # the next one to take, and of it the next shard
        self._before = 0  # tokens in those shards of the chunk that are taken
        self._first = 0  # where the next run begins
        self._slices: list[ShardSlice] = []  # of the next run
        self._items = 0  # in those slices
        self._done = False

    def ready(self) -> Iterator[Run]:
        """The runs that became known since the last call; the last of all ends with the array."""
        while self._chunk < self._tree.leaf_count:
            shards = self._chunks[self._chunk]
            before = self._tree.offset(self._chunk) if self._shard < len(shards) else None
            if before is None:
                return
            for record in shards[self._shard :]:
                yield from self._take(record.shape, before.tokens + self._before)
                self._before += record.split(self.split).tokens
            self._shard = len(shards)
            if not shards[-1].is_last:
                return
            self._chunk += 1
            self._shard = self._before = 0
        total = self._tree.total
        if self._done or total is None:
            return
        self._done = True
        if self.array == "starts":
            yield self._run(total.tokens)
        elif self._items:
            yield self._run()

    def _take(self, shape: ShardShape, token_offset: int) -> Iterator[Run]:
        part = STARTS_OF[self.split] if self.array == "starts" else self.split
        count = shape.part_bytes(part) // shape.item_bytes(part)
        start = 0
        while start < count:
            stop = min(count, start + self._run_items - self._items)
            own = shape.for_slice(part, start, stop)
            self._slices.append(ShardSlice(own, start, stop, token_offset))
            self._items += stop - start
            start = stop
            # The closing start belongs to the last run: a run that is full may still be followed by it.
            if self._items == self._run_items:
                yield self._run()

    def _run(self, closing: int | None = None) -> Run:
        run = Run(self.split, self.array, self._first, tuple(self._slices), closing)
        self._first += self._items
        self._slices, self._items = [], 0
        return run
