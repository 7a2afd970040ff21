"""The state of a conversion: which shards are encoded and which parts of the arrays are written.

    add(record) of each shard  ->  ready() merge tasks  ->  written(task, files)  ->  files of shards to delete

Shards may be added in any order and are processed in order: the offset of a shard in the arrays is the sum over the
shards before it. The merge tasks read every token of every shard exactly once. Of a merged shard only counts are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from convert.errors import BrokenInvariant
from convert.planning.plan import Plan, ShardId
from convert.shards.merge import MergePlanner, MergeTask
from convert.shards.shard import ARRAYS, IntakeCounts, ShardFile, ShardRecord, SplitCounts
from flat_tokens.format import SPLITS
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord


class Ledger:
    """The shards of a plan and the files of the arrays.

    counts, intake: of all shards before `next`, the first shard that is missing.
    shard_count, token_count, bad_count: of all shards so far; bad_count includes unreadable files.
    unreadable: error by source.
    sources: int64[sources, 4], sequences and tokens in train, then in validation.
    quarantine: (file with bad records, counted lines) of shards that have one of them, if kept.
    files: of the arrays.
    unmerged_bytes: what merge tasks have still to read.
    """

    def __init__(self, plan: Plan, layout: ArrayLayout, keeps_quarantine: bool) -> None:
        self._plan, self._keeps_quarantine = plan, keeps_quarantine
        self.sources: NDArray[np.int64] = np.zeros((len(plan.sources), 4), dtype=np.int64)
        self.counts = dict.fromkeys(SPLITS, SplitCounts())
        self.intake = IntakeCounts()
        self.shard_count = self.token_count = self._skipped_count = self._text_bytes = 0
        self.unreadable: dict[int, str] = {}
        self.quarantine: list[tuple[ShardFile, Sequence[tuple[int, int]]]] = []
        self.files: list[FileRecord] = []
        self.next = ShardId(0)
        self._waiting: dict[int, dict[int, ShardRecord]] = {}  # by chunk: shards after a missing one
        self._unread: dict[str, int] = {}  # by file of a shard: bytes that are not merged
        self.unmerged_bytes = 0
        self._planners = [MergePlanner(split, array, layout) for split in SPLITS for array in ARRAYS]
        self._ready: list[MergeTask] = []

    @property
    def bad_count(self) -> int:
        """The number of bad records and unreadable files."""
        return self._skipped_count + len(self.unreadable)

    @property
    def is_complete(self) -> bool:
        """Whether all shards are there."""
        return self.next.chunk_index == self._plan.chunk_count

    def add(self, record: ShardRecord) -> None:
        """Add a shard. BrokenInvariant if it was added before, or if its counts contradict each other."""
        known = self._waiting.setdefault(record.id.chunk_index, {})
        if record.id < self.next or record.id.number in known:
            raise BrokenInvariant(f"{record.id}: added twice")
        known[record.id.number] = record
        self.shard_count += 1
        self.token_count += record.train.tokens + record.validation.tokens
        self._skipped_count += record.intake.skipped_count
        while (
            following := self._waiting.get(self.next.chunk_index, {}).pop(self.next.number, None)
        ) is not None:
            self._process(following)
            if following.is_last:
                if not self._waiting[self.next.chunk_index]:
                    del self._waiting[self.next.chunk_index]
                self.next = ShardId(self.next.chunk_index + 1)
            else:
                self.next = ShardId(self.next.chunk_index, self.next.number + 1)

    def _process(self, record: ShardRecord) -> None:
        _check(record)
        for planner in self._planners:
            self._ready += planner.add(record, self.counts[planner.split].tokens)
        self._unread |= {file.name: file.size for file in record.arrays if file.size}
        self.unmerged_bytes += sum(file.size for file in record.arrays)
        for split in SPLITS:
            self.counts[split] = self.counts[split].plus(record.split(split))
        self.intake = self.intake.plus(record.intake)
        if self._keeps_quarantine and (record.quarantine.size or record.intake.lines):
            self.quarantine.append((record.quarantine, record.intake.lines))
        for index, *counts in record.sources:
            self.sources[index] += counts
        for index, error in record.intake.unreadable:
            self.unreadable.setdefault(index, error)
        self._text_bytes += record.text_bytes

    def ready(self) -> Iterator[MergeTask]:
        """Yield the merge tasks that became possible since the last call."""
        if self.is_complete:
            for planner in self._planners:
                self._ready += planner.end(self.counts[planner.split].tokens)
            self._planners = []
        ready, self._ready = self._ready, []
        yield from ready

    def written(self, task: MergeTask, files: list[FileRecord]) -> list[str]:
        """Add the files of a merge task. Return the files of shards that no other task reads."""
        self.files += files
        unneeded = []
        for own in task.slices:
            size = own.stop - own.start
            self.unmerged_bytes -= size
            self._unread[own.file.name] -= size
            if not self._unread[own.file.name]:
                del self._unread[own.file.name]
                unneeded.append(own.file.name)
        return unneeded

    def done(self, chunk_index: int) -> tuple[frozenset[int], bool]:
        """Return the numbers of a chunk's shards that were added, and whether they are all."""
        if chunk_index < self.next.chunk_index:
            return frozenset(), True
        processed = self.next.number if chunk_index == self.next.chunk_index else 0
        waiting = self._waiting.get(chunk_index, {})
        numbers = frozenset(range(processed)).union(waiting)
        has_last = any(record.is_last for record in waiting.values())
        return numbers, has_last and len(numbers) == max(numbers) + 1

    def needed_files(self) -> set[str]:
        """Return the files of shards that are still to be read."""
        waiting = [record for own in self._waiting.values() for record in own.values()]
        names = {file.name for record in waiting for file in record.arrays if file.size} | self._unread.keys()
        if self._keeps_quarantine:
            kept = [file for file, _ in self.quarantine] + [record.quarantine for record in waiting]
            names |= {file.name for file in kept if file.size}
        return names

    def check_whole(self) -> None:
        """Raise BrokenInvariant unless all shards are merged and all bytes of the corpus are accounted for."""
        if not self.is_complete or self._waiting or self._unread:
            left = f"shards of {len(self._waiting)} chunks waiting and {len(self._unread)} files not merged"
            raise BrokenInvariant(f"text chunk {self.next.chunk_index}: incomplete, with {left}")
        by_split = [count for own in self.counts.values() for count in (own.sequences, own.tokens)]
        found = [self._text_bytes, *self.sources.sum(axis=0).tolist()]
        if found != [self._plan.total_bytes, *by_split]:
            raise BrokenInvariant(
                f"encoded bytes, sequences and tokens: {found} in the sources, but the plan has "
                f"{self._plan.total_bytes} bytes and the splits have {by_split}"
            )


def _check(record: ShardRecord) -> None:
    """Raise BrokenInvariant unless every record of the shard's text is accounted for."""
    both, skipped = record.train.plus(record.validation), record.intake.skipped_count
    is_split = all(own.documents == own.sequences + own.empty for own in (record.train, record.validation))
    if not is_split or record.intake.records != both.documents + skipped:
        counts = f"{record.intake.records} records, but {both} and {skipped} skipped"
        raise BrokenInvariant(f"text chunk {record.id.chunk_index}, shard {record.id.number}: {counts}")
