"""The long part of a conversion: text chunks become shards and shards become runs of the arrays, side by side.

Runs are written as soon as the shards they read are there, so the ids of few shards lie on the disk at a time. What is
done is noted in the journal as its result comes in, and taken over after an interruption (convert/earlier_run.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from convert import worker
from convert.context import Context
from convert.earlier_run import EarlierRun, take_over
from convert.errors import BadInput
from convert.intake import check_error_count
from convert.journal import Journal
from convert.plan import ShardId, TextChunk
from convert.processes.tasks import SHOW_SECONDS, TaskPool
from convert.progress import Stage
from convert.shards.assembly import Assembly
from convert.shards.runs import Run
from convert.shards.shard import PARTS, SPLITS, ShardRecord
from convert.shards.slots import SlotFiles, Slots
from convert.workspace import Workspace
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.writer import create_arrays

# So much work a power loss may cost that was noted before; a sync for each note would be as many as zarr chunks need.
_JOURNAL_SYNC_SECONDS = 1.0


@dataclass
class Result:
    """All shards' records, all files of the arrays; seconds by step of the workers; shards taken over; what was done
    once but is damaged or gone, by what it is, and made again."""

    assembly: Assembly
    seconds: dict[str, float] = field(default_factory=dict)
    reused: int = 0
    lost: Counter[str] = field(default_factory=Counter)


def encode_and_merge(
    context: Context, meanwhile: Callable[[], None], encoded: Callable[[Assembly], None]
) -> Result:
    """Encode every text chunk of the plan and write every run, as tasks of the context's pool.

    Files of runs are synced, and the journal by which they are taken over after a power loss. Shards are not: they are
    soon merged, and made again if they are lost. meanwhile() is called once the workers have work, encoded(assembly)
    when the last chunk is encoded.
    """
    journal = Journal(context.workspace.shards)
    recorded = journal.recorded()
    threshold = None
    if context.options.validation_docs is not None:
        from convert.choose_held_out import choose_threshold

        threshold = choose_threshold(context, journal, recorded)
    earlier = take_over(context, recorded)
    slots = SlotFiles(context.workspace.shards, earlier.assembly.held_files(recorded.shards))
    for split in SPLITS:
        create_arrays(context.workspace.dataset, split, context.layout)
    result = Result(Assembly(context.plan.chunk_count, context.layout))
    if earlier.lost_runs:
        result.lost["run"] = earlier.lost_runs
    loop = _Loop(context, journal, slots, earlier, result, threshold)
    with context.progress.stage("encode", context.plan.total_bytes) as stage:
        busy = loop.chunks_left(stage)
        meanwhile()
        while busy:
            loop.collect(stage, None)
            busy = loop.chunks_left(stage)
    slots.end_reuse()
    encoded(result.assembly)
    with context.progress.stage("merge", loop.run_bytes) as stage:
        while len(context.pool):
            loop.collect(None, stage)
    return result


@contextmanager
def keeping_finished(pool: TaskPool, workspace: Workspace) -> Iterator[None]:
    """Note in the journal, after an error and when the workers have ended, what they finished meanwhile."""
    try:
        yield
    except BaseException:
        journal = Journal(workspace.shards)
        with suppress(OSError):  # what ended the work may stand in the way of this too
            for task, outcome in pool.finished():
                if isinstance(task, Run):
                    journal.finish_run(task, outcome)
                elif not outcome.reused:
                    for record in outcome.records:
                        journal.finish(record)
        raise


class _Loop:
    """What is in flight, and what follows from each result."""

    def __init__(
        self,
        context: Context,
        journal: Journal,
        slots: SlotFiles,
        earlier: EarlierRun,
        result: Result,
        threshold: int | None,
    ) -> None:
        self._context, self._journal, self._earlier, self._result = context, journal, earlier, result
        self._threshold = threshold
        self._slot_files = slots
        self._slots: dict[int, Slots] = {}  # of the chunks in flight
        self._next_sync = 0.0
        self._remaining: Iterator[TextChunk] = context.plan.chunks()
        self._chunks = 0  # in flight
        self._done_bytes: dict[int, int] = {}  # of the chunks in flight that have a shard already
        # Few chunks ahead: what waits in the queue stands before the runs that would free the disk.
        self._window = context.options.worker_count + 2
        self._bad_count = 0
        self.run_bytes = 0  # of the runs in flight

    def chunks_left(self, stage: Stage) -> bool:
        """Begin what may begin; whether chunks are still being encoded."""
        while self._chunks < self._window:
            chunk = next(self._remaining, None)
            if chunk is None:
                break
            self._chunks += 1
            self._go_on(chunk, stage)
        self._begin_runs()
        return self._chunks > 0

    def _go_on(self, chunk: TextChunk, stage: Stage) -> None:
        """Have the chunk's next shard encoded. Of those an earlier run made, what nothing needs is taken over at once,
        the others are looked at by the worker."""
        earlier, pool, plan = self._earlier.assembly, self._context.pool, self._context.plan
        known = earlier.shards(chunk.index)
        number = len(self._result.assembly.shards(chunk.index))
        needed = PARTS
        while number < len(known) and not (needed := earlier.needed_parts(known[number].id)):
            if self._take(chunk, worker.ChunkResult((known[number],), reused=True), stage):
                return
            number += 1
        if chunk.index not in self._slots:
            self._slots[chunk.index] = self._slot_files.take(chunk.index)
        # A worker that keeps it open is given shard after shard, and runs between them.
        key = chunk.index if pool.keeps and plan.is_packed(chunk) else None
        pool.submit(
            chunk,
            partial(plan.describe, chunk),
            worker.encode_chunk,
            chunk,
            self._slots[chunk.index],
            self._threshold,
            number,
            known[number] if number < len(known) else None,
            needed,
            key is None,
            key=key,
        )

    def collect(self, chunks: Stage | None, runs: Stage | None) -> None:
        """Wait for results and do what follows from them."""
        pool = self._context.pool
        for task, outcome in pool.done(SHOW_SECONDS):
            if isinstance(task, TextChunk) and chunks is not None:
                if not self._take(task, outcome, chunks):
                    self._go_on(task, chunks)
            else:
                self._finish(task, outcome)
                self.run_bytes -= task.raw_bytes
                if runs is not None:
                    runs.advance(task.raw_bytes, task.item_count if task.array == "tokens" else 0)
        if chunks is not None:
            running = ((task, done) for task, done in pool.running() if isinstance(task, TextChunk))
            chunks.show_running(
                sum(max(0, done - self._done_bytes.get(chunk.index, 0)) for chunk, done in running)
            )

    def _take(self, chunk: TextChunk, outcome: worker.ChunkResult, stage: Stage) -> bool:
        """What follows from the next shards of a chunk; whether they are its last."""
        result = self._result
        for record in outcome.records:
            known = self._known(record.id)
            text_bytes = chunk.text_bytes if record.is_last else 0
            if record.text_bytes != text_bytes or known not in (None, record):
                raise BadInput(
                    f"{self._context.plan.describe(chunk)} is not what an earlier run read there; "
                    f"start anew with --overwrite"
                )
            if not outcome.reused:
                self._journal.finish(record)
                self._sync_journal()
            result.assembly.add(record)
            result.reused += outcome.reused
            result.lost["shard"] += known is not None and not outcome.reused
            self._bad_count += record.intake.skipped_count
            check_error_count(self._bad_count, self._context.options.max_errors)
            stage.advance(0, record.train.tokens + record.validation.tokens)
        for step, seconds in outcome.seconds.items():
            result.seconds[step] = result.seconds.get(step, 0.0) + seconds
        is_last = outcome.records[-1].is_last
        before, done_bytes = self._done_bytes.pop(chunk.index, 0), outcome.done_bytes
        if is_last:
            done_bytes = self._context.plan.work_bytes(chunk)
            self._end(chunk)
        else:
            self._done_bytes[chunk.index] = max(before, done_bytes)
        stage.advance(max(0, done_bytes - before))
        return is_last

    def _known(self, shard: ShardId) -> ShardRecord | None:
        """The record of an earlier run, if there is one."""
        known = self._earlier.assembly.shards(shard.chunk_index)
        return known[shard.number] if shard.number < len(known) else None

    def _end(self, chunk: TextChunk) -> None:
        """All shards of a chunk are there: of the slots that it has, it keeps those whose files they lie in."""
        index = chunk.index
        self._chunks -= 1
        if self._context.plan.is_packed(chunk):
            self._context.pool.release(index)
        dealt = self._slots.pop(index, None)
        names = _files_of(self._earlier.assembly.shards(index))
        if dealt is not None:
            names.update(dealt.parts)
        names -= _files_of(self._result.assembly.shards(index))
        if dealt is not None:
            names.add(dealt.small)
        for name in names:
            self._slot_files.give_back(name, index)

    def _begin_runs(self) -> None:
        for run in self._result.assembly.ready():
            files = self._earlier.files(run)
            if files is not None:
                self._keep(run, files)
            else:
                self._context.pool.submit(run, run.describe, worker.merge_run, run)
                self.run_bytes += run.raw_bytes

    def _finish(self, run: Run, files: list[FileRecord]) -> None:
        self._journal.finish_run(run, files)
        self._sync_journal()
        self._keep(run, files)

    def _keep(self, run: Run, files: list[FileRecord]) -> None:
        dataset = self._context.workspace.dataset
        self._context.syncer.add(f"{dataset}/{file.path}" for file in files)
        assembly = self._result.assembly
        for shard, part in assembly.written(run, files):
            self._slot_files.give_back(assembly.place(shard, part), shard.chunk_index)

    def _sync_journal(self) -> None:
        if (now := time.monotonic()) >= self._next_sync:
            self._next_sync = now + _JOURNAL_SYNC_SECONDS
            self._context.syncer.add([self._journal.path], stays=True)


def _files_of(records: Iterable[ShardRecord]) -> set[str]:
    return {name for record in records for name, _ in record.places}
