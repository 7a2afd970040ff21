"""The long part of a conversion: text chunks become shards and shards become runs of the arrays, side by side.

    work = EncodeAndMerge(context)   takes over what an earlier run left
    work.begin(stage)                the workers have work
    work.encode(stage)               until the last text chunk is encoded
    work.merge(stage)                until the last run is written

Runs are written as soon as the shards they read are there, so the ids of few shards lie on the disk at a time. What is
done is noted in the journal as its result comes in, and taken over after an interruption (convert/earlier_run.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from convert import worker
from convert.context import Context
from convert.earlier_run import take_over
from convert.engine.tasks import SHOW_SECONDS, TaskPool
from convert.errors import BadInput, DataLost
from convert.intake import needs_quarantine
from convert.journal import Journal
from convert.plan import ShardId, TextChunk
from convert.progress import Stage
from convert.shards.assembly import Assembly
from convert.shards.merge import WrittenFile
from convert.shards.runs import Run
from convert.shards.shard import PARTS, SPLITS, ShardRecord
from convert.shards.shard_files import ShardFiles
from convert.shards.shard_reader import Damage
from convert.workspace import Workspace
from corpus.intake import check_error_count
from flat_tokens.writer import create_arrays

# So much work a power loss may cost that was noted before; a sync for each note would be as many as zarr chunks need.
_JOURNAL_SYNC_SECONDS = 1.0


class EncodeAndMerge:
    """Every text chunk of the plan is encoded and every run written, as tasks of the context's pool.

    Files of runs are synced, and the journal by which they are taken over after a power loss. Shards are not: they are
    soon merged, and made again if they are lost. assembly: all shards' records, all files of the arrays; seconds: by
    step of the workers; reused: shards taken over; lost: what was done once but is damaged or gone, by what it is, and
    made again; run_bytes: of the runs in flight.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._journal = Journal(context.workspace.shards)
        recorded = self._journal.recorded()
        self._threshold: int | None = None
        if context.options.validation_docs is not None:
            from convert.choose_held_out import choose_threshold

            self._threshold = choose_threshold(context, self._journal, recorded)
        self._earlier = take_over(context, recorded)
        # Few chunks ahead: what waits in the queue stands before the runs that would free the disk.
        self._window = context.engine.worker_count + 2
        self._files = ShardFiles(
            context.workspace.scratch, self._earlier.assembly.needed_files(), most_spares=self._window
        )
        for split in SPLITS:
            create_arrays(context.workspace.dataset, split, context.layout)
        self.assembly = Assembly(context.plan.chunk_count, context.layout)
        self.seconds: dict[str, float] = {}
        self.reused = 0
        self.lost = Counter({"run": self._earlier.lost_runs})
        self.run_bytes = 0
        self._next_sync = 0.0
        self._remaining: Iterator[TextChunk] = context.plan.chunks()
        self._chunks = 0  # in flight
        self._spares: dict[Any, str | None] = {}  # that tasks in flight were given
        self._done_bytes: dict[int, int] = {}  # of the chunks in flight that have a shard already
        self._bad_count = 0
        self._waiting_runs: dict[ShardId, list[Run]] = {}  # for a damaged shard that is made again
        self._made_again: set[ShardId] = set()

    def begin(self, stage: Stage) -> None:
        """Give the workers the first text chunks."""
        self._begin_chunks(stage)

    def encode(self, stage: Stage) -> None:
        """Return when all text chunks are encoded; runs are written beside."""
        pool = self._context.pool
        while self._chunks:
            for task, outcome in pool.done(SHOW_SECONDS):
                if isinstance(task, TextChunk):
                    self._take_chunk(task, outcome, stage)
                else:
                    self._take(task, outcome)
            running = ((task, done) for task, done in pool.running() if isinstance(task, TextChunk))
            stage.show_running(
                sum(max(0, done - self._done_bytes.get(chunk.index, 0)) for chunk, done in running)
            )
            self._begin_chunks(stage)
        self._files.end_spares()

    def merge(self, stage: Stage) -> None:
        """Return when all runs are written."""
        while len(self._context.pool):
            for task, outcome in self._context.pool.done(SHOW_SECONDS):
                if self._take(task, outcome):
                    stage.advance(task.raw_bytes, task.item_count if task.array == "tokens" else 0)

    def _begin_chunks(self, stage: Stage) -> None:
        while self._chunks < self._window:
            chunk = next(self._remaining, None)
            if chunk is None:
                break
            self._chunks += 1
            self._go_on(chunk, stage)
        self._begin_runs()

    def _go_on(self, chunk: TextChunk, stage: Stage) -> None:
        """Have the chunk's next shard encoded. Of those an earlier run made, what nothing needs is taken over at once,
        the others are looked at by the worker."""
        earlier, pool, plan = self._earlier.assembly, self._context.pool, self._context.plan
        known = earlier.shards(chunk.index)
        number = len(self.assembly.shards(chunk.index))
        rules, needed = self._context.options.intake_rules, PARTS
        while number < len(known):
            needed = earlier.needed_parts(known[number].id)
            if needed or needs_quarantine(known[number].intake, rules):
                break
            if self._take_shards(chunk, worker.ChunkResult((known[number],), reused=True), stage):
                return
            number += 1
        # A worker that keeps it open is given shard after shard, and runs between them.
        keep_open = self._context.engine.can_stick and plan.is_packed(chunk)
        pool.submit(
            chunk,
            partial(plan.describe, chunk),
            worker.encode_chunk,
            chunk,
            self._context.job_key,
            self._spare_for(chunk),
            self._threshold,
            number,
            known[number] if number < len(known) else None,
            needed,
            not keep_open,
            sticky=chunk.index if keep_open else None,
        )

    def _spare_for(self, task: TextChunk | ShardId) -> str | None:
        spare = self._spares[task] = self._files.take_spare()
        return spare

    def _take_chunk(self, chunk: TextChunk, outcome: worker.ChunkResult, stage: Stage) -> None:
        self._files.return_spare(self._spares.pop(chunk))
        if not self._take_shards(chunk, outcome, stage):
            self._go_on(chunk, stage)

    def _take_shards(self, chunk: TextChunk, outcome: worker.ChunkResult, stage: Stage) -> bool:
        """What follows from the next shards of a chunk; whether they are its last."""
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
                if known is not None:
                    self._files.discard(known)
                    # One that was made without quarantine is not lost, but of no use any more.
                    self.lost["shard"] += known.intake.quarantine_bytes == record.intake.quarantine_bytes
            self.assembly.add(record)
            self._files.add(record)
            self.reused += outcome.reused
            self._bad_count += record.intake.skipped_count
            check_error_count(self._bad_count, self._context.options.max_errors)
            stage.advance(0, record.train.tokens + record.validation.tokens)
        for step, seconds in outcome.seconds.items():
            self.seconds[step] = self.seconds.get(step, 0.0) + seconds
        is_last = outcome.records[-1].is_last
        before, done_bytes = self._done_bytes.pop(chunk.index, 0), outcome.done_bytes
        if is_last:
            done_bytes = self._context.plan.work_bytes(chunk)
            self._chunks -= 1
            if self._context.plan.is_packed(chunk):
                self._context.engine.release(chunk.index)
        else:
            self._done_bytes[chunk.index] = max(before, done_bytes)
        stage.advance(max(0, done_bytes - before))
        return is_last

    def _known(self, shard: ShardId) -> ShardRecord | None:
        """The record of an earlier run, if there is one."""
        known = self._earlier.assembly.shards(shard.chunk_index)
        return known[shard.number] if shard.number < len(known) else None

    def _begin_runs(self) -> None:
        for run in self.assembly.ready():
            self.run_bytes += run.raw_bytes
            files = self._earlier.files(run)
            if files is not None:
                self._keep(run, files)
            else:
                self._submit_run(run)

    def _submit_run(self, run: Run) -> None:
        if self._made_again:
            run = self.assembly.current(run)
        self._context.pool.submit(run, run.describe, worker.merge_run, run, self._context.job_key)

    def _take(self, task: Run | ShardId, outcome: Any) -> bool:
        """What follows from a run, or from a shard that was made again; whether a run is written."""
        if isinstance(task, ShardId):
            self._take_again(task, outcome)
            return False
        if isinstance(outcome, Damage):
            self._make_again(task, outcome)
            return False
        self._journal.finish_run(task, outcome)
        self._sync_journal()
        self._keep(task, outcome)
        return True

    def _keep(self, run: Run, files: list[WrittenFile]) -> None:
        self.run_bytes -= run.raw_bytes
        dataset = self._context.workspace.dataset
        self._context.syncer.add(f"{dataset}/{file.record.path}" for file in files)
        for shard, part in self.assembly.written(run, files):
            self._files.release(self.assembly.record(shard).shape.place(part)[0])

    def _make_again(self, run: Run, damage: Damage) -> None:
        """A run found that a shard is not what its worker recorded: it is encoded again, once, and the run waits."""
        shard = damage.shard
        if shard in self._waiting_runs:
            self._waiting_runs[shard].append(run)
            return
        if self.assembly.current(run) != run:  # since this run was begun, the shard was made again
            self._submit_run(run)
            return
        if shard in self._made_again:
            raise DataLost(
                f"{damage.text}, for the second time; check the disk and the memory of this machine"
            )
        self._made_again.add(shard)
        self._waiting_runs[shard] = [run]
        self.lost["shard"] += 1
        chunk = self._context.plan.chunk(shard.chunk_index)
        self._context.pool.submit(
            shard,
            partial(self._context.plan.describe, chunk),
            worker.encode_again,
            chunk,
            self._context.job_key,
            damage,
            self._spare_for(shard),
            self._threshold,
        )

    def _take_again(self, shard: ShardId, record: ShardRecord) -> None:
        self._files.return_spare(self._spares.pop(shard))
        former = self.assembly.record(shard)
        if record != former:
            chunk = self._context.plan.chunk(shard.chunk_index)
            raise DataLost(
                f"a temporary shard of {self._context.plan.describe(chunk)} was damaged, and what was encoded again "
                f"is not the same; start anew with --overwrite"
            )
        self._journal.finish(record)
        self.assembly.replace(record)
        self._files.discard(former)
        self._files.add(record, self.assembly.needed_parts(shard))
        for run in self._waiting_runs.pop(shard):
            self._submit_run(run)

    def _sync_journal(self) -> None:
        if (now := time.monotonic()) >= self._next_sync:
            self._next_sync = now + _JOURNAL_SYNC_SECONDS
            self._context.syncer.add([self._journal.path], stays=True)


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
                    if not isinstance(outcome, Damage):
                        journal.finish_run(task, outcome)
                elif isinstance(task, TextChunk) and not outcome.reused:
                    for record in outcome.records:
                        journal.finish(record)
        raise
