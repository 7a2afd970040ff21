"""What is known of the conversion while it goes on: shards come in, runs that became possible come out.

    add(record) of each shard, in any order  ->  ready() runs to write  ->  written(run)  ->  parts of shards to delete

A shard's ids are needed until the runs that read them are written, its starts until those of seq_starts are too. So
the ids of only a few shards lie on the disk at a time, in files that are used again (convert/shards/slots.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from convert.errors import BrokenInvariant
from convert.journal import Recorded
from convert.shards.merge_tree import MergeTree, Totals
from convert.shards.runs import ARRAYS, Run, RunPlanner
from convert.shards.shard import PARTS, SPLITS, STARTS_OF, ShardRecord, ShardShape
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord


class Assembly:
    """The shards of `chunk_count` text chunks, their places in the arrays, and what of the arrays is written."""

    def __init__(self, chunk_count: int, layout: ArrayLayout) -> None:
        self.records: list[ShardRecord | None] = [None] * chunk_count
        self.files: list[FileRecord] = []
        self._shapes: list[ShardShape | None] = [None] * chunk_count
        self._trees = {split: MergeTree(chunk_count) for split in SPLITS}
        units = {"tokens": layout.write_unit_tokens, "starts": layout.write_unit_starts}
        self._planners = [
            RunPlanner(split, array, units[array], self._trees[split], self._shapes)
            for split in SPLITS
            for array in ARRAYS
        ]
        # (chunk, part) -> how many items are in runs that read it and are not written yet.
        self._unread: dict[tuple[int, str], int] = {}

    def add(self, record: ShardRecord) -> None:
        """A shard is there."""
        index, shape = record.chunk_index, record.shape
        if self.records[index] is not None:
            raise BrokenInvariant(f"text chunk {index} was encoded twice")
        self.records[index], self._shapes[index] = record, shape
        for split in SPLITS:
            counts = record.split(split)
            self._trees[split].add(index, Totals(counts.tokens, counts.sequences, counts.max_token_id))
            self._unread[index, split] = counts.tokens
            self._unread[index, STARTS_OF[split]] = counts.tokens + counts.sequences

    def ready(self) -> Iterator[Run]:
        """The runs that became possible since the last call, each once."""
        for planner in self._planners:
            yield from planner.ready()

    def written(self, run: Run, files: list[FileRecord]) -> list[tuple[int, str]]:
        """A run is written and its record kept: the (chunk, part) that no other run needs."""
        self.files += files
        unneeded = []
        for part in run.parts:
            for name in run.reads:
                key = (part.shape.chunk_index, name)
                self._unread[key] -= part.stop - part.start
                if self._unread[key] == 0:
                    unneeded.append(key)
        return unneeded

    def needed_parts(self, chunk_index: int) -> tuple[str, ...]:
        """The parts of a shard that some run has still to read; all of them while the shard is not known."""
        if self.records[chunk_index] is None:
            return PARTS
        return tuple(part for part in PARTS if self._unread[chunk_index, part])

    def held_files(self, order: Iterable[int]) -> dict[str, int]:
        """By name the files of shards with parts that are needed, and whose; of two, whose comes later in `order`."""
        held: dict[str, int] = {}
        for index in order:
            record = self.records[index]
            if record is not None:
                held |= {record.shape.place(part)[0]: index for part in self.needed_parts(index)}
        return held

    def total(self, split: str) -> Totals:
        """What the arrays of a split hold; all shards must be there."""
        total = self._trees[split].total
        if total is None:
            raise BrokenInvariant("the merge tree is not complete")
        return total


def recorded_assembly(
    chunk_count: int, layout: ArrayLayout, recorded: Recorded
) -> tuple[Assembly, list[tuple[Run, list[FileRecord]]]]:
    """What an earlier run left by its records alone: the shards it knew, and the runs it wrote with their files.

    Nothing of it is trusted yet: the files may be gone or damaged.
    """
    earlier = Assembly(chunk_count, layout)
    for record in recorded.shards.values():
        earlier.add(record)
    runs = []
    for run in earlier.ready():
        files = recorded.run(run)
        if files is not None:
            runs.append((run, files))
    return earlier, runs
