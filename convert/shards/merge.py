"""Merging: parts of arrays as slices of shards, which tasks write as files of the dataset.

The driver handles millions of files. The journal, the ledger and the results of tasks hold a few bytes for each; only
the manifest and the final verification need an object per file.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert.errors import naming
from convert.planning.plan import ShardId
from convert.shards.shard import ITEM_BYTES, NOT_TRAINED, ShardFile, ShardRecord, ShardSlice
from convert.shards.shard_store import ShardStore
from flat_tokens.format import MASK_NAME, STARTS_NAME, TOKENS_NAME
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.verify_units import verify_files
from flat_tokens.writer import place_of, write_run
from tokenmill.engines.job import JobKey, find_job
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.stores.durability import sync

if TYPE_CHECKING:
    from convert.encode.job import Job

MERGE_ITEMS = 4 << 20  # of a task: fewer cost more per task than they save, more give too few tasks
SAMPLED_SHARE = 16  # one file in so many is read back
Files = list[FileRecord]
_FILE = np.dtype([("bytes", "<u8"), ("digest", "<u8")])


class WrittenFiles(NamedTuple):
    """Files `first`, `first + 1`, ... of an array. prefix: of their paths. packed: _FILE of each, in base 64."""

    prefix: str
    first: int
    packed: str

    @classmethod
    def pack(cls, files: Sequence[FileRecord]) -> WrittenFiles:
        """Pack consecutive files of one array, at least one."""
        path = files[0].path
        prefix = path.rstrip("0123456789")
        rows = np.array([(record.bytes, int(record.xxh64, 16)) for record in files], _FILE)
        return cls(prefix, int(path[len(prefix) :]), base64.b64encode(rows.tobytes()).decode())

    def records(self) -> Iterator[FileRecord]:
        """Yield the record of each file."""
        rows = np.frombuffer(base64.b64decode(self.packed), _FILE).tolist()
        for number, (size, digest) in enumerate(rows, self.first):
            yield FileRecord(f"{self.prefix}{number}", size, f"{digest:016x}")


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
    """

    def __init__(self, split: str, array: str, unit: int) -> None:
        self.split, self.array = split, array
        self._task_items = max(1, MERGE_ITEMS // unit) * unit
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
            item = ITEM_BYTES[self.array]
            file = record.file(self.split, self.array)
            self._slices.append(ShardSlice(file, start * item, stop * item, added))
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


def merge(task: MergeTask, key: JobKey, unneeded: Sequence[str] = ()) -> list[WrittenFiles]:
    """Write one part of an array, and the loss mask of its tokens. unneeded: files of merged shards to delete.

    Files get their names when they are complete, and every attempt writes the same bytes, so a late attempt does no
    harm. DataLost if a shard is missing or damaged.
    """
    job: Job = find_job(key)
    job.shards.store.delete(unneeded)
    place = place_of(job.dataset)
    written: dict[str, Files] = {}
    with naming(f"{place}/{task.split}"):
        for files in _write(job, task):
            written.setdefault(files[0].path.rpartition("/")[0], []).extend(files)
        if job.syncs and isinstance(place, Path):
            for record in chain.from_iterable(written.values()):
                sync(place / record.path)
    return [WrittenFiles.pack(files) for files in written.values()]


class FileCheck(NamedTuple):
    """Files of merge task `number` of an earlier run. reads_all: compare the content of all of them."""

    number: int
    files: Sequence[WrittenFiles]
    reads_all: bool


class ShardCheck(NamedTuple):
    """Files of a shard of an earlier run. reads_all: compare their content, not only their size."""

    shard: ShardId
    files: Sequence[ShardFile]
    reads_all: bool


def check_files(check: FileCheck, key: JobKey) -> bool:
    """Return whether files of the dataset have their sizes, and a sample of them their content."""
    place = place_of(find_job(key).dataset)
    sample: list[FileRecord] = []
    for files in check.files:
        for number, record in enumerate(files.records(), files.first):
            if check.reads_all or number % SAMPLED_SHARE == 0:
                sample.append(record)
            elif isinstance(place, Path) and _size_of(place / record.path) != record.bytes:
                return False
    return not verify_files(place, tuple(sample)).problems


def lost_shards(checks: Sequence[ShardCheck], key: JobKey) -> list[ShardId]:
    """Return the shards with a missing or damaged file."""
    shards: ShardStore = find_job(key).shards
    return [
        check.shard
        for check in checks
        if not all(shards.is_intact(file, check.reads_all) for file in check.files)
    ]


def _write(job: Job, task: MergeTask) -> Iterator[Files]:
    """Write the files of a task and yield their records, some files of one array at a time."""
    to, first = (job.dataset, task.split, job.layout), task.first
    for unit in _units(job, task):
        take_step()  # a worker without a parent must not write into the output of a later run
        if task.array == "starts":
            yield write_run(*to, STARTS_NAME, first, unit, job.temporary)
        else:
            if job.has_mask:
                trained = unit < NOT_TRAINED
                unit &= ~NOT_TRAINED
                yield write_run(*to, MASK_NAME, first, trained, job.temporary)
            yield write_run(*to, TOKENS_NAME, first, unit, job.temporary)
        first += len(unit)


def _units(job: Job, task: MergeTask) -> Iterator[NDArray[Any]]:
    """Yield the items of a task, a write unit at a time, each valid until the next."""
    is_starts = task.array == "starts"
    size = job.layout.write_unit_starts if is_starts else job.layout.write_unit_tokens
    unit = thread_buffer("write unit", size, np.uint64 if is_starts else np.uint32)
    filled = 0
    for own in task.slices:
        for data in job.shards.read_slice(own):
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


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None
