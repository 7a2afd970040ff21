"""Planning of merges: each part of an array as slices of shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from convert.shards.shard import ITEM_BYTES, ShardRecord, ShardSlice

MERGE_TOKENS = (2 << 20, 8 << 20)  # of a task: smaller ones cost more than they save, larger ones are too few


class MergeTask(NamedTuple):
    """Items [first, first + item_count) of an array of a split, in whole write units except at the end of the array.

    array: tokens or starts.
    slices: their contents end to end are the items.
    closing: the last start of the array, which is the number of tokens, or None.
    """

    split: str
    array: str
    first: int
    slices: tuple[ShardSlice, ...]
    closing: int | None = None

    @property
    def name(self) -> str:
        """What identifies the task among all tasks of a dataset: merge-train-tokens-0."""
        return f"merge-{self.split}-{self.array}-{self.first}"

    def describe(self) -> str:
        """Return the name for errors and progress."""
        return f"{self.split} {self.array} from {self.first}"

    @property
    def item_count(self) -> int:
        """The number of items, including the closing start."""
        sliced = sum(own.stop - own.start for own in self.slices)
        return sliced // ITEM_BYTES[self.array] + (self.closing is not None)

    @property
    def raw_bytes(self) -> int:
        """The bytes of the items before compression, for progress."""
        return self.item_count * ITEM_BYTES[self.array]


class MergePlanner:
    """Turns the shards of a dataset, in order, into the merge tasks of one array of a split.

    unit: items per file.
    items: about how many items a task has.
    """

    def __init__(self, split: str, array: str, unit: int, items: int) -> None:
        self.split, self.array = split, array
        self._task_items = max(1, items // unit) * unit
        self._first = 0  # of the next task
        self._slices: list[ShardSlice] = []
        self._items = 0  # in the slices

    def add(self, record: ShardRecord, tokens_before: int) -> Iterator[MergeTask]:
        """Add the next shard and yield the tasks that are complete. tokens_before: tokens of the split before it."""
        counts = record.split(self.split)
        count, added = (counts.tokens, 0) if self.array == "tokens" else (counts.sequences, tokens_before)
        start = 0
        while start < count:
            stop = min(count, start + self._task_items - self._items)
            self._slices.append(record.slice(self.split, self.array, start, stop, added))
            self._items += stop - start
            start = stop
            if self._items == self._task_items:
                yield self._task()

    def end(self, tokens: int) -> Iterator[MergeTask]:
        """Yield the last task, if there is one. tokens: of the split."""
        if self.array == "starts":
            yield self._task(tokens)
        elif self._items:
            yield self._task()

    def _task(self, closing: int | None = None) -> MergeTask:
        task = MergeTask(self.split, self.array, self._first, tuple(self._slices), closing)
        self._first += self._items
        self._slices, self._items = [], 0
        return task


def merge_items(chunk_bytes: int) -> int:
    """Return the items of a merge task: about as many tokens as a text chunk gives, within MERGE_TOKENS."""
    smallest, largest = MERGE_TOKENS
    return min(max(chunk_bytes // 4, smallest), largest)
