"""What is known of the conversion while it goes on: shards come in, runs that became possible come out.

    add(record) of each shard  ->  ready() runs to write  ->  written(run)  ->  parts of shards that nothing reads

Text chunks come in any order, the shards of one in theirs. A shard's ids are needed until the runs that read them are
written, its starts until those of seq_starts are too. So the ids of only a few shards lie on the disk at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from convert.errors import BrokenInvariant
from convert.journal import Recorded
from convert.plan import ShardId
from convert.shards.merge import WrittenFile
from convert.shards.merge_tree import MergeTree, Totals
from convert.shards.runs import ARRAYS, Run, RunPlanner
from convert.shards.shard import PARTS, SPLITS, STARTS_OF, ShardRecord
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts


class Assembly:
    """The shards of `chunk_count` text chunks, their places in the arrays, and what of the arrays is written.

    files: those of the arrays that are written; facts: of files of encoded_tokens, by path.
    """

    def __init__(self, chunk_count: int, layout: ArrayLayout) -> None:
        self.files: list[FileRecord] = []
        self.facts: dict[str, TokenFacts] = {}
        # One tuple for all chunks of which nothing is known: there may be many.
        self._chunks: list[tuple[ShardRecord, ...]] = [()] * chunk_count
        self._trees = {split: MergeTree(chunk_count) for split in SPLITS}
        units = {"tokens": layout.write_unit_tokens, "starts": layout.write_unit_starts}
        self._planners = [
            RunPlanner(split, array, units[array], self._trees[split], self._chunks)
            for split in SPLITS
            for array in ARRAYS
        ]
        # (shard, part) -> how many items are in runs that read it and are not written yet.
        self._unread: dict[tuple[ShardId, str], int] = {}

    def add(self, record: ShardRecord) -> None:
        """A shard is there, the next one of its text chunk."""
        index = record.id.chunk_index
        before = self._chunks[index]
        if record.id.number != len(before) or (before and before[-1].is_last):
            raise BrokenInvariant(
                f"shard {record.id.number} of text chunk {index} comes behind {len(before)}"
            )
        own = self._chunks[index] = (*before, record)
        for split in SPLITS:
            counts = record.split(split)
            self._unread[record.id, split] = counts.tokens
            self._unread[record.id, STARTS_OF[split]] = counts.tokens + counts.sequences
            if record.is_last:
                self._trees[split].add(index, sum((totals_of(shard, split) for shard in own), Totals()))

    def shards(self, chunk_index: int) -> tuple[ShardRecord, ...]:
        """Those of a text chunk so far, in order."""
        return self._chunks[chunk_index]

    def records(self) -> Iterator[ShardRecord]:
        """All shards so far, in order."""
        return chain.from_iterable(self._chunks)

    def ready(self) -> Iterator[Run]:
        """The runs that became possible since the last call, each once."""
        for planner in self._planners:
            yield from planner.ready()

    def written(self, run: Run, files: list[WrittenFile]) -> list[tuple[ShardId, str]]:
        """A run is written and its record kept: the (shard, part) that no other run needs."""
        self.files += (file.record for file in files)
        self.facts.update((file.record.path, file.facts) for file in files if file.facts is not None)
        unneeded = []
        for own in run.slices:
            for part in run.reads:
                key = (own.shape.id, part)
                self._unread[key] -= own.stop - own.start
                if self._unread[key] == 0:
                    unneeded.append(key)
        return unneeded

    def needed_parts(self, shard: ShardId) -> tuple[str, ...]:
        """The parts of a shard that some run has still to read; all of them while the shard is not known."""
        return tuple(part for part in PARTS if self._unread.get((shard, part), 1))

    def record(self, shard: ShardId) -> ShardRecord:
        """That of a shard that is there."""
        return self._chunks[shard.chunk_index][shard.number]

    def replace(self, record: ShardRecord) -> None:
        """A shard was made again: it holds the same and lies elsewhere."""
        index, number = record.id
        own = self._chunks[index]
        self._chunks[index] = (*own[:number], record, *own[number + 1 :])

    def current(self, run: Run) -> Run:
        """The run with the places where its shards lie now."""
        slices = (
            own._replace(shape=own.shape._replace(places=self.record(own.shape.id).places))
            for own in run.slices
        )
        return run._replace(slices=tuple(slices))

    def needed_files(self) -> set[str]:
        """The names of the files with parts that some run has still to read."""
        return {
            record.shape.place(part)[0] for record in self.records() for part in self.needed_parts(record.id)
        }

    def total(self, split: str) -> Totals:
        """What the arrays of a split hold; all shards must be there."""
        total = self._trees[split].total
        if total is None:
            raise BrokenInvariant("the merge tree is not complete")
        return total


def totals_of(record: ShardRecord, split: str) -> Totals:
    """What a shard holds of a split."""
    counts = record.split(split)
    return Totals(counts.tokens, counts.sequences, counts.max_token_id)


def recorded_assembly(
    chunk_count: int, layout: ArrayLayout, recorded: Recorded, whole_chunks: bool = False
) -> tuple[Assembly, list[tuple[Run, list[WrittenFile]]]]:
    """What an earlier run left by its records alone: the shards it knew, and the runs it wrote with their files.

    Nothing of it is trusted yet: the files may be gone or damaged. A shard behind one that is not recorded is left out;
    whole_chunks: and so are those of a chunk of which the last is not there.
    """
    earlier = Assembly(chunk_count, layout)
    for chunk_index in {shard.chunk_index for shard in recorded.shards}:
        own = list(recorded.of_chunk(chunk_index))
        if own and (own[-1].is_last or not whole_chunks):
            for record in own:
                earlier.add(record)
    runs = []
    for run in earlier.ready():
        files = recorded.run(run)
        if files is not None:
            runs.append((run, files))
    return earlier, runs
