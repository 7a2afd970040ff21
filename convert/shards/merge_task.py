"""The tasks of merging: shards become files of the dataset, and a resumed run checks both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert.errors import naming
from convert.planning.plan import ShardId
from convert.shards.shard import NOT_TRAINED, ShardFile
from convert.shards.shard_store import ShardStore
from convert.shards.write_units import MergeTask
from convert.shards.written_files import WrittenFiles
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.verify_units import verify_files
from flat_tokens.writer import place_of, write_mask, write_starts, write_tokens
from tokenmill.engines.job import JobKey, find_job
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.buffers import thread_buffer
from tokenmill.stores.durability import sync

if TYPE_CHECKING:
    from convert.encode.job import Job

SAMPLED_SHARE = 16  # one file in so many is read back
Files = list[FileRecord]


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
            yield write_starts(*to, first, unit, job.temporary)
        else:
            if job.has_mask:
                trained = unit < NOT_TRAINED
                unit &= ~NOT_TRAINED
                yield write_mask(*to, first, trained, job.temporary)
            yield write_tokens(*to, first, unit, job.temporary)
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
