"""The main stage of a conversion: text chunks are encoded into shards while finished shards are merged into arrays.

    work = EncodeAndMerge(context, threshold)      reuses finished work
    work.encode(stage)                             returns when all text chunks are encoded
    work.merge(stage)                              returns when all arrays are written

Merge tasks come first, because they free scratch space, then unpacked blocks, then text chunks. No text chunk starts
while too many bytes wait to be merged. A large compressed file is unpacked by one task into blocks, which other tasks
encode while it unpacks the next ones. A task of a job array merges nothing.

Resuming: the journal lists finished shards and merge tasks. All listed shards go into the ledger. Files of the dataset
that merge tasks have written are reused if they pass this check, depending on --verify:

    sample   on a store, every object has its size; on a disk, also the content of one file in 16
    full     the content of every file

Both find missing and truncated files. A changed byte outside of the sample is found by "full" here, and otherwise by
the verification at the end of the run, which then fails. The next run after that, and the first one after the machine
has started again, compare the content of every file.

Shards that remain to be merged must have their sizes. The content of the last ones is compared as well, because a power
failure may have damaged them. All others are compared when they are merged. Shards that fail are encoded again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from convert.driver.ledger import Ledger
from convert.encode import encode_task, unpack_task
from convert.encode.job import Clock, Job
from convert.errors import Refused
from convert.planning.plan import ShardId, TextChunk
from convert.shards.intake import is_usable, lacks_quarantine
from convert.shards.merge import MergeTask, are_intact, lost_shards, merge
from convert.workdir.workdir import WorkDir
from flat_tokens.format import SPLITS, TOKENS_NAME
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.places import locate
from flat_tokens.writer import create_arrays
from tokenmill.cli.progress import Progress, Stage
from tokenmill.engines.engine import Engine
from tokenmill.engines.job import JobKey
from tokenmill.engines.tasks import SHOW_SECONDS, TaskPool
from tokenmill.inputs.intake import check_error_count
from tokenmill.inputs.sizes import counted
from tokenmill.inputs.sources import empty_tables
from tokenmill.stores import StoreError
from tokenmill.stores.folder_lock import boot_id

UNMERGED_BYTES = 256 << 20  # of shards per worker
POLL_SECONDS = 0.1  # between two looks for an unpacked block; on a store, SHOW_SECONDS
UNPACKED_SHARE = 2  # files larger than the corpus / (this * workers) are unpacked
DAMAGE = "verification failed"  # as a task in the journal
LAST_SHARDS = 1024  # shards that are read back in any case
SHARDS_PER_CHECK = 16


def unmerged_limit(worker_count: int) -> int:
    """Return the bytes of shards above which no further text chunk is started."""
    return UNMERGED_BYTES * max(4, worker_count)


@dataclass(frozen=True)
class Context:
    """A conversion at work, from the start of its workers.

    pool: tasks in flight.
    job_key: by which tasks find the job.
    warnings: the last ones about workers and stores.
    """

    job: Job
    workspace: WorkDir
    progress: Progress
    clock: Clock
    pool: TaskPool
    job_key: JobKey
    warnings: deque[str]

    @property
    def engine(self) -> Engine:
        """Where the tasks run."""
        return self.pool.engine

    @property
    def window(self) -> int:
        """The number of short tasks in flight."""
        return 4 * self.engine.worker_count


@dataclass(eq=False)
class _OpenChunk:
    """A text chunk that was started.

    done: numbers of its shards from an earlier run.
    tasks: in flight.
    next_block, block_count, next_poll: for a chunk that is being unpacked, the next block to encode, the number of
    blocks once it is known, and when to look for the next block.
    """

    chunk: TextChunk
    done: frozenset[int]
    tasks: int = 0
    next_block: int | None = None
    block_count: int | None = None
    next_poll: float = 0.0

    @property
    def has_blocks(self) -> bool:
        """Whether blocks remain to be encoded, or may follow."""
        if self.next_block is None:
            return False
        return self.block_count is None or self.next_block < self.block_count


class _ChunkTask(NamedTuple):
    """Encodes or unpacks a text chunk, or encodes one unpacked block of it."""

    opened: _OpenChunk
    is_block: bool


class EncodeAndMerge:
    """Encodes all text chunks and writes all arrays with the tasks of the context's pool.

    threshold: from --validation-docs, or None.

    ledger: the state of all shards and arrays.
    seconds: of the workers, by step.
    reused: shards of an earlier run.
    """

    def __init__(self, context: Context, threshold: int | None = None) -> None:
        self._context, self._log, self._threshold = context, context.workspace.log, threshold
        self._is_share = context.job.options.share is not None
        self.ledger, self._merges, self.reused = resume(context, threshold)
        self.seconds: dict[str, float] = {}
        self._remaining = map(context.job.plan.chunk, context.job.plan.share(context.job.options.share))
        self._following = next(self._remaining, None)
        self._open: list[_OpenChunk] = []
        self._unneeded: list[str] = []  # files of merged shards, to be deleted by the next tasks
        self._entries: list[dict[str, Any]] = []  # for the log
        self._encoding = Stage("encode", 0)

    def encode(self, stage: Stage) -> None:
        """Return when all text chunks are encoded. Merge tasks run at the same time."""
        context, next_show = self._context, 0.0
        for split in SPLITS:
            create_arrays(
                context.workspace.dataset, split, context.job.layout, has_mask=context.job.options.has_mask
            )
        self._encoding = stage
        stage.advance(0, self.ledger.token_count)
        self._submit()
        while self._open or self._following is not None:
            self._take_results(POLL_SECONDS)
            if (now := time.monotonic()) >= next_show:
                next_show = now + SHOW_SECONDS
                running = context.pool.running()  # unpacking includes its blocks
                own = (done for task, done in running if isinstance(task, _ChunkTask) and not task.is_block)
                stage.show_running(sum(own))
            self._submit()

    def merge(self, stage: Stage) -> None:
        """Return when all arrays are written."""
        while len(self._context.pool):
            for task in self._take_results(SHOW_SECONDS):
                stage.advance(task.raw_bytes, task.item_count if task.array == TOKENS_NAME else 0)
        self._log.flush()

    @property
    def run_bytes(self) -> int:
        """The bytes of the merge tasks in flight."""
        running = self._context.pool.running()
        return sum(task.raw_bytes for task, _ in running if isinstance(task, MergeTask))

    @contextmanager
    def noting_finished(self) -> Iterator[None]:
        """Record tasks that finish while an error ends the run. Keep it open as long as the workers run."""
        try:
            yield
        except BaseException:
            with suppress(OSError, StoreError):  # the error may prevent this, too
                for task, outcome in self._context.pool.finished():
                    self._take(task, outcome)
                self._note()
                self._log.flush()
            raise

    # Submitting tasks

    def _submit(self) -> None:
        """Submit all merge tasks, and as much text as there is room for."""
        context = self._context
        merges, self._merges = [*self._merges, *self.ledger.ready()], []
        for task in () if self._is_share else merges:
            unneeded, self._unneeded = self._unneeded, []
            arguments = task, context.job_key, unneeded
            context.pool.submit(task, partial(str, task.name), merge, *arguments, name=task.name)
        for opened in self._open:
            self._submit_blocks(opened)
            if not opened.tasks and not opened.has_blocks:
                self._encoding.advance(context.job.plan.work_bytes(opened.chunk))
        self._open = [opened for opened in self._open if opened.tasks or opened.has_blocks]
        while (chunk := self._following) and self._has_slot and (self._has_room or not self._open):
            self._start(chunk)
            self._following = next(self._remaining, None)

    @property
    def _has_slot(self) -> bool:
        """Whether few tasks of text chunks are in flight, because merge tasks queue after them."""
        return sum(opened.tasks for opened in self._open) < self._context.engine.worker_count + 2

    @property
    def _has_room(self) -> bool:
        """Whether few bytes wait to be merged."""
        limit = unmerged_limit(self._context.engine.worker_count)
        return self._is_share or self.ledger.unmerged_bytes < limit

    def _start(self, chunk: TextChunk) -> None:
        """Submit the first task of a text chunk, unless an earlier run has encoded it."""
        done, is_whole = self.ledger.done(chunk.index)
        if is_whole:
            self._encoding.advance(self._context.job.plan.work_bytes(chunk))
            return
        # Other workers would be idle at the end if one of them encoded a long chunk alone.
        plan, workers = self._context.job.plan, self._context.engine.worker_count
        unpacking = sum(opened.next_block is not None for opened in self._open)
        is_long = chunk.text_bytes * UNPACKED_SHARE * workers > plan.total_bytes
        unpacks = is_long and unpacking < workers - 1 and plan.can_unpack(chunk)
        self._open.append(_OpenChunk(chunk, done, next_block=0 if unpacks else None))
        function = unpack_task.unpack_chunk if unpacks else encode_task.encode_chunk
        self._submit_task(_ChunkTask(self._open[-1], False), function, chunk, done)

    def _submit_blocks(self, opened: _OpenChunk) -> None:
        """Submit tasks for the blocks of a chunk that are unpacked by now."""
        is_next = opened.chunk.index == self.ledger.next.chunk_index
        while opened.has_blocks and self._has_slot:
            shard = ShardId(opened.chunk.index, opened.next_block or 0)
            if shard.number not in opened.done:
                if not (is_next or self._has_room) or not self._is_unpacked(opened, shard):
                    return
                self._submit_task(_ChunkTask(opened, True), unpack_task.encode_block, shard)
            opened.next_block = shard.number + 1

    def _is_unpacked(self, opened: _OpenChunk, shard: ShardId) -> bool:
        if opened.block_count is not None:
            return True
        if time.monotonic() < opened.next_poll:
            return False
        shards = self._context.workspace.shard_store
        if unpack_task.is_unpacked(shards, shard):
            return True
        opened.next_poll = time.monotonic() + (POLL_SECONDS if shards.store.is_local else SHOW_SECONDS)
        return False

    def _submit_task(self, task: _ChunkTask, function: Callable[..., Any], *args: Any) -> None:
        context, chunk = self._context, task.opened.chunk
        task.opened.tasks += 1
        function = partial(function, *args, key=context.job_key, threshold=self._threshold)
        describe = partial(context.job.plan.describe, chunk)
        context.pool.submit(task, describe, function, name=f"encode-{chunk.index}")

    # Results

    def _take_results(self, seconds: float) -> list[MergeTask]:
        """Wait for results, at most so many seconds, and process them. Return the finished merge tasks."""
        written = []
        try:
            for task, outcome in self._context.pool.done(seconds):
                self._take(task, outcome)
                if isinstance(task, MergeTask):
                    written.append(task)
        finally:
            self._note()
        check_error_count(self.ledger.bad_count, self._context.job.options.max_errors)
        return written

    def _take(self, task: MergeTask | _ChunkTask, outcome: Any) -> None:
        """Add the result of a task to the ledger and to the entries for the log."""
        if isinstance(task, MergeTask):
            entry = {"task": task.name, "items": task.item_count, "files": outcome, "boot": boot_id()}
            self._entries.append(entry)
            self._unneeded += self.ledger.written(task, outcome)
            return
        task.opened.tasks -= 1
        if isinstance(outcome, int):
            task.opened.block_count = outcome
            return
        for record in outcome.records:
            self._entries.append(record.as_json())
            self.ledger.add(record)
            self._encoding.advance(0, record.train.tokens + record.validation.tokens)
        for step, seconds in outcome.seconds.items():
            self.seconds[step] = self.seconds.get(step, 0.0) + seconds

    def _note(self) -> None:
        """Append the entries since the last call to the log."""
        entries, self._entries = self._entries, []
        self._log.append(entries)


def resume(context: Context, threshold: int | None = None) -> tuple[Ledger, list[MergeTask], int]:
    """Take over finished work, and remove everything else from the folders of the run.

    Return the ledger, the merge tasks to run and the number of reused shards. A task of a job array leaves the work of
    others alone. threshold: see EncodeAndMerge.

    Refused (exit 6) if shards were made with other rules for bad records, BadInput (exit 3) if their sources changed.
    """
    workspace, options = context.workspace, context.job.options
    recorded, own_chunks = workspace.recorded, context.job.plan.share(options.share)
    ledger = Ledger(context.job.plan, context.job.layout, keeps_quarantine=options.on_error == "quarantine")
    ledger.unreadable.update(empty_tables(context.job.plan.sources))
    tasks: list[MergeTask] = []
    written: list[tuple[MergeTask, list[FileRecord]]] = []
    for _, record in sorted(recorded.shards.items()):
        if record.id.chunk_index not in own_chunks or lacks_quarantine(record, context.job.rules):
            continue
        if not is_usable(record, context.job.rules):
            raise Refused(
                f"{workspace.root}: bad records were left out, which --on-error {options.on_error} does not allow. "
                "Resume with the former --on-error and --replace-invalid, or start over with --restart."
            )
        ledger.add(record)
        for task in ledger.ready():
            entry = recorded.tasks.get(task.name, {})
            if entry.get("items") == task.item_count:
                written.append((task, [FileRecord(*file) for file in entry["files"]]))
            else:
                tasks.append(task)
    intact = _intact(context, written)
    for number, (task, files) in enumerate(written):
        if number in intact:
            ledger.written(task, files)
        else:
            tasks.append(task)
    if options.share is None:
        workspace.clean_dataset({file.path for file in ledger.files})
    needed = ledger.needed_files()
    workspace.shard_store.delete_others(needed, None if options.share is None else own_chunks)
    lost_shards = _encode_lost_shards(context, needed, threshold)
    recorded.shards.clear()  # the ledger holds the records that are still needed
    lost = {"output span": len(written) - len(intact), "temporary shard": lost_shards}
    if any(lost.values()):
        shown = " and ".join(counted(count, what) for what, count in lost.items() if count)
        context.progress.note(f"rebuilt {shown} of {workspace.root} that were damaged or missing")
    return ledger, tasks, ledger.shard_count - lost_shards


def _intact(context: Context, written: list[tuple[MergeTask, list[FileRecord]]]) -> set[int]:
    """Return the indexes of merge tasks with intact files."""
    tasks = context.workspace.recorded.tasks
    reads_all = context.job.options.verify == "full" or DAMAGE in tasks
    place = locate("root", context.workspace.dataset)
    if not isinstance(place, Path) and not reads_all:
        sizes = {entry.key: entry.size for entry in place.store.list()} if written else {}
        return {
            number
            for number, (_, files) in enumerate(written)
            if all(sizes.get(file.path) == file.bytes for file in files)
        }
    # As long as the machine has not started again, it has all bytes that were written.
    boots = [tasks[task.name]["boot"] for task, _ in written]
    checks = (
        (number, files, reads_all or boot is None or boot != boot_id())
        for number, ((_, files), boot) in enumerate(zip(written, boots, strict=True))
    )
    return {number for (number, *_), is_intact in _run(context, are_intact, checks) if is_intact}


def _encode_lost_shards(context: Context, needed: set[str], threshold: int | None) -> int:
    """Encode shards with a missing or damaged file again. Return their number."""
    shards = context.workspace.recorded.shards
    last = set(list(shards)[-LAST_SHARDS:])
    checks = (
        (record.id, files, context.job.options.verify == "full" or record.id in last)
        for _, record in sorted(shards.items())
        if (files := [file for file in (*record.arrays, record.quarantine) if file.name in needed])
    )
    batches = iter(lambda: tuple(islice(checks, SHARDS_PER_CHECK)), ())
    lost = sorted(shard for _, found in _run(context, lost_shards, batches) for shard in found)
    by_chunk = groupby(lost, lambda shard: shard.chunk_index)
    records = ([shards[shard] for shard in group] for _, group in by_chunk)
    for _ in _run(context, partial(encode_task.encode_again, threshold=threshold), records):
        pass
    return len(lost)


def _run(context: Context, function: Callable[..., Any], tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield (task, result) of each task."""
    function = partial(function, key=context.job_key)
    return context.pool.run(function, tasks, context.window, lambda _: "work of an earlier run")
