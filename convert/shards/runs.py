"""Runs of the dataset's arrays: which slices of shards each is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from convert.planning.plan import ShardId
from convert.shards.shard import NOWHERE, PARTS, PLACES_OF, START_BYTES, STARTS_OF, ShardShape

RUN_TOKENS = (2 << 20, 8 << 20)  # at least, at most


def run_tokens(chunk_bytes: int) -> int:
    """About how many tokens a run has, given the bytes of a text chunk: as many as a chunk gives, so that there are
    about as many runs as chunks; within limits, so that a task is worth sending and the last ones are shared out."""
    least, most = RUN_TOKENS
    return min(max(chunk_bytes // 4, least), most)


NO_SHARD = ShardId(-1)  # of a slice that reads none: of starts that came with records


class ShardSlice(NamedTuple):
    """Tokens or sequences [start, stop) of one shard; token_offset: the place of its first token in the array.

    shape: with the digests that the slice needs (`ShardShape.for_slice`). inline: of NO_SHARD, the starts themselves,
    counted from the first token of the array, or the places.
    """

    shape: ShardShape
    start: int
    stop: int
    token_offset: int
    inline: bytes = b""


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
    def reads(self) -> tuple[str, ...]:
        """Which parts of its shards the run reads: ids get their start flags by the starts."""
        own = part_of(self.split, self.array)
        return (own, STARTS_OF[self.split]) if self.array == "tokens" else (own,)

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


_NO_SHAPE = ShardShape(NO_SHARD, 2, (0, 0), (0, 0), (NOWHERE,) * len(PARTS), (b"",) * len(PARTS))


class RunPlanner:
    """The runs of one array of a split, about `tokens` items in whole units, in order and each once."""

    def __init__(self, split: str, array: str, unit: int, tokens: int) -> None:
        self.split, self._array = split, array
        self._run_items = max(1, tokens // unit) * unit
        self._first = 0  # where the next run begins
        self._slices: list[ShardSlice] = []  # of the next run
        self._inline = bytearray()  # behind the slices: starts or places that came with records
        self._items = 0  # in both

    def take(self, shape: ShardShape, token_offset: int) -> Iterator[Run]:
        """The runs that are full with the next shard; token_offset: the tokens of the split before it."""
        part = part_of(self.split, self._array)
        if self._array == "places":
            token_offset = 0  # they count in sources
        count = shape.part_bytes(part) // shape.item_bytes(part)
        start = 0
        while start < count:
            stop = min(count, start + self._run_items - self._items)
            inline = shape.inline[PARTS.index(part)]
            if inline:
                starts = np.frombuffer(inline, np.uint64)[start:stop] + np.uint64(token_offset)
                self._inline += starts.tobytes()
            else:
                self._end_inline()
                self._slices.append(ShardSlice(shape.for_slice(part, start, stop), start, stop, token_offset))
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
            self._slices.append(ShardSlice(_NO_SHAPE, 0, count, 0, bytes(self._inline)))
            self._inline.clear()

    def _run(self, closing: int | None = None) -> Run:
        self._end_inline()
        run = Run(self.split, self._array, self._first, tuple(self._slices), closing)
        self._first += self._items
        self._slices, self._items = [], 0
        return run
