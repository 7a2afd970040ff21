"""Merging: parts of arrays as slices of shards, which tasks write as files of the dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert.errors import naming
from convert.planning.plan import ShardId
from convert.shards.shard import NOT_TRAINED, ShardFile, ShardRecord
from convert.shards.shard_store import ShardStore
from flat_tokens.format import DTYPES, MASK_NAME, STARTS_NAME, TOKENS_NAME
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.places import locate
from flat_tokens.verify_units import verify_files
from flat_tokens.writer import write_run
from tokenmill.engines.job import JobKey, find_job
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.stores.durability import sync

if TYPE_CHECKING:
    from convert.encode.job import Job

MERGE_ITEMS = 4 << 20  # of a task: fewer cost more per task than they save, more give too few tasks
SAMPLED_SHARE = 16  # one file in so many is read back


class ShardSlice(NamedTuple):
    """Bytes [start, stop) of a file of a shard.

    added: number to add to each item, because the merged starts count from the beginning of the merged tokens.
    """

    file: ShardFile
    start: int
    stop: int
    added: int


class MergeTask(NamedTuple):
    """Items [first, first + item_count) of an array of a split, in whole write units except at the end of the array.

    array: encoded_tokens or seq_starts.
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
        """What identifies the task among all tasks of a dataset: merge-train/encoded_tokens-0."""
        return f"merge-{self.split}/{self.array}-{self.first}"

    @property
    def item_count(self) -> int:
        """The number of items, including the closing start."""
        sliced = sum(own.stop - own.start for own in self.slices)
        return sliced // DTYPES[self.array].itemsize + (self.closing is not None)

    @property
    def raw_bytes(self) -> int:
        """The bytes of the items before compression, for progress."""
        return self.item_count * DTYPES[self.array].itemsize


class MergePlanner:
    """Turns the shards of a dataset, in order, into the merge tasks of one array of a split."""

    def __init__(self, split: str, array: str, layout: ArrayLayout) -> None:
        self.split, self.array = split, array
        _, unit = layout.cuts(array)
        self._task_items = max(1, MERGE_ITEMS // unit) * unit
        self._first = 0  # of the next task
        self._slices: list[ShardSlice] = []
        self._items = 0  # in the slices

    def add(self, record: ShardRecord, tokens_before: int) -> Iterator[MergeTask]:
        """Add the next shard and yield the tasks that are complete. tokens_before: tokens of the split before it."""
        file, item = record.file(self.split, self.array), DTYPES[self.array].itemsize
        added = tokens_before if self.array == STARTS_NAME else 0
        start, count = 0, file.size // item
        while start < count:
            stop = min(count, start + self._task_items - self._items)
            self._slices.append(ShardSlice(file, start * item, stop * item, added))
            self._items += stop - start
            start = stop
            if self._items == self._task_items:
                yield self._task()

    def end(self, tokens: int) -> Iterator[MergeTask]:
        """Yield the last task, if there is one. tokens: of the split."""
        if self.array == STARTS_NAME:
            yield self._task(tokens)
        elif self._items:
            yield self._task()

    def _task(self, closing: int | None = None) -> MergeTask:
        task = MergeTask(self.split, self.array, self._first, tuple(self._slices), closing)
        self._first += self._items
        self._slices, self._items = [], 0
        return task


def merge(task: MergeTask, key: JobKey, unneeded: Sequence[str] = ()) -> list[FileRecord]:
    """Write one part of an array, and the loss mask of its tokens. unneeded: files of merged shards to delete.

    Files get their names when they are complete, and every attempt writes the same bytes, so a late attempt does no
    harm. DataLost if a shard is missing or damaged.
    """
    job: Job = find_job(key)
    job.shards.store.delete(unneeded)
    place, to = locate("root", job.dataset), (job.dataset, task.split, job.layout)
    first, written = task.first, list[FileRecord]()
    with naming(f"{place}/{task.split}"):
        for unit in _units(job, task):
            take_step()  # a worker without a parent must not write into the output of a later run
            if task.array == TOKENS_NAME and job.has_mask:
                written += write_run(*to, MASK_NAME, first, unit < NOT_TRAINED, job.temporary)
                unit &= ~NOT_TRAINED
            written += write_run(*to, task.array, first, unit, job.temporary)
            first += len(unit)
        if job.syncs and isinstance(place, Path):
            for record in written:
                sync(place / record.path)
    return written


def _units(job: Job, task: MergeTask) -> Iterator[NDArray[Any]]:
    """Yield the items of a task, a write unit at a time, each valid until the next."""
    _, size = job.layout.cuts(task.array)
    unit = thread_buffer("write unit", size, DTYPES[task.array])
    filled = 0
    for own in task.slices:
        for data in job.shards.read(own.file, own.start, own.stop):
            items = data.view(unit.dtype)
            while len(items):
                some = items[: size - filled]
                np.add(some, unit.dtype.type(own.added), out=unit[filled : filled + len(some)])
                filled += len(some)
                items = items[len(some) :]
                if filled == size:
                    yield unit
                    filled = 0
    if task.closing is not None:
        unit[filled] = task.closing
        filled += 1
    if filled:
        yield unit[:filled]


def are_intact(check: tuple[int, Sequence[FileRecord], bool], key: JobKey) -> bool:
    """Return whether files of the dataset have their sizes, and a sample of them their content.

    check: (number of the merge task, its files, whether to compare the content of all of them).
    """
    _, files, reads_all = check
    place = locate("root", find_job(key).dataset)
    if isinstance(place, Path) and any(_size_of(place / file.path) != file.bytes for file in files):
        return False
    return not verify_files(place, tuple(files if reads_all else sorted(files)[::SAMPLED_SHARE])).problems


def lost_shards(files_of: Sequence[tuple[ShardId, Sequence[ShardFile], bool]], key: JobKey) -> list[ShardId]:
    """Return the shards with a missing or damaged file.

    files_of: (shard, its files, whether to compare their content and not only their size).
    """
    shards: ShardStore = find_job(key).shards
    return [
        shard
        for shard, files, reads_all in files_of
        if not all(shards.is_intact(file, reads_all) for file in files)
    ]


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
