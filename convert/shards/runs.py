"""Runs of the dataset's arrays: which slices of shards each is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from convert.planning.plan import ShardId
from convert.shards.shard import NOWHERE, PLACES_OF, START_BYTES, STARTS_OF, Part, ShardRecord

RUN_TOKENS = (2 << 20, 8 << 20)  # at least, at most


def run_tokens(chunk_bytes: int) -> int:
    """About how many tokens a run has, given the bytes of a text chunk: as many as a chunk gives, so that there are
    about as many runs as chunks; within limits, so that a task is worth sending and the last ones are shared out."""
    least, most = RUN_TOKENS
    return min(max(chunk_bytes // 4, least), most)


NO_SHARD = ShardId(-1)  # of starts and places that came with records


class ShardSlice(NamedTuple):
    """Tokens or sequences [start, stop) of one shard; token_offset: the place of its first token in the array.

    parts: what is read for it, with the digests that it needs. Ids get their start flags by the starts, which follow
    them. Starts that came with records are one part of NO_SHARD, counted from the first token of the array, and so are
    places.
    """

    parts: tuple[Part, ...]
    start: int
    stop: int
    token_offset: int


class Run(NamedTuple):
    """Items [first, first + sum of the slices) of one array of a split. closing: the array's last start, or None."""

    split: str
    array: str  # tokens, starts or places
    first: int
    slices: tuple[ShardSlice, ...]
    closing: int | None = None

    def describe(self) -> str:
        """For errors and progress."""
        return f"{self.split} {self.array} from {self.first}"

    @property
    def key(self) -> tuple[str, str, int]:
        """Which run it is: there is one that begins there."""
        return self.split, self.array, self.first

    @property
    def item_count(self) -> int:
        """How many items the run has, the closing start included."""
        return sum(own.stop - own.start for own in self.slices) + (self.closing is not None)

    @property
    def raw_bytes(self) -> int:
        """How many bytes the run has before compression, for progress."""
        return self.item_count * (4 if self.array == "tokens" else 8)


def part_of(split: str, array: str) -> str:
    """The part of shards that an array of a split is made of."""
    return {"tokens": split, "starts": STARTS_OF[split], "places": PLACES_OF[split]}[array]


class RunPlanner:
    """The runs of one array of a split, about `tokens` items in whole units, in order and each once."""

    def __init__(self, split: str, array: str, unit: int, tokens: int) -> None:
        self.split, self._array = split, array
        self._run_items = max(1, tokens // unit) * unit
        self._first = 0  # where the next run begins
        self._slices: list[ShardSlice] = []  # of the next run
        self._inline = bytearray()  # behind the slices: starts or places that came with records
        self._items = 0  # in both

    def take(self, record: ShardRecord, token_offset: int) -> Iterator[Run]:
        """The runs that are full with the next shard; token_offset: the tokens of the split before it."""
        part = record.part(part_of(self.split, self._array))
        if self._array == "places":
            token_offset = 0  # they count in sources
        start = 0
        while start < part.item_count:
            stop = min(part.item_count, start + self._run_items - self._items)
            if part.inline:
                starts = np.frombuffer(part.inline, np.uint64)[start:stop] + np.uint64(token_offset)
                self._inline += starts.tobytes()
            else:
                self._end_inline()
                flags = (record.part(STARTS_OF[self.split]),) if self._array == "tokens" else ()
                parts = (part.for_items(start, stop), *flags)
                self._slices.append(ShardSlice(parts, start, stop, token_offset))
            self._items += stop - start
            start = stop
            # The closing start belongs to the last run: a run that is full may still be followed by it.
            if self._items == self._run_items:
                yield self._run()

    def end(self, tokens: int) -> Iterator[Run]:
        """The last run, if there is one more; tokens: of the split."""
        if self._array == "starts":
            yield self._run(tokens)
        elif self._items:
            yield self._run()

    def _end_inline(self) -> None:
        """Make a slice of what came with records."""
        if self._inline:
            count = len(self._inline) // START_BYTES
            part = Part(NO_SHARD, self._array, START_BYTES, count, *NOWHERE, b"", bytes(self._inline))
            self._slices.append(ShardSlice((part,), 0, count, 0))
            self._inline.clear()

    def _run(self, closing: int | None = None) -> Run:
        self._end_inline()
        run = Run(self.split, self._array, self._first, tuple(self._slices), closing)
        self._first += self._items
        self._slices, self._items = [], 0
        return run
