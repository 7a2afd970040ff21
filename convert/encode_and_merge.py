"""The long part of a conversion: text chunks become shards and shards become runs of the arrays, side by side.

Runs are written as soon as the shards they read are there, so the ids of few shards lie on the disk at a time. What is
done is noted in the journal as its result comes in, and taken over after an interruption (convert/earlier_run.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from convert import worker
from convert.context import Context
from convert.earlier_run import EarlierRun, take_over
from convert.errors import BadInput
from convert.intake import check_error_count
from convert.journal import Journal
from convert.plan import TextChunk
from convert.processes.tasks import TaskPool
from convert.progress import Stage
from convert.shards.assembly import Assembly
from convert.shards.runs import Run
from convert.shards.shard import SPLITS, ShardRecord
from convert.shards.slots import SlotFiles, Slots
from convert.workspace import Workspace
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.writer import create_arrays

# So much work a power loss may cost that was noted before; a sync for each note would be as many as zarr chunks need.
_JOURNAL_SYNC_SECONDS = 1.0
# What a compressed file holds is one task, be it of minutes: so often it is asked how far it is.
_SHOW_SECONDS = 0.5


@dataclass
class Result:
    """All shards' records, all files of the arrays; seconds by step of the workers; chunks taken over; what was done
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
                    journal.finish(outcome.record)
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
            earlier = self._earlier.assembly
            record, parts = earlier.records[chunk.index], earlier.needed_parts(chunk.index)
            if record is not None and not parts:
                self._take(chunk, worker.ChunkResult(record, reused=True), stage)
                continue
            slots = self._slots[chunk.index] = self._slot_files.take(chunk.index)
            describe = partial(self._context.plan.describe, chunk)
            self._context.pool.submit(
                chunk, describe, worker.encode_chunk, chunk, slots, self._threshold, record, parts
            )
            self._chunks += 1
        self._begin_runs()
        return self._chunks > 0

    def collect(self, chunks: Stage | None, runs: Stage | None) -> None:
        """Wait for results and do what follows from them."""
        pool = self._context.pool
        for task, outcome in pool.done(_SHOW_SECONDS):
            if isinstance(task, TextChunk) and chunks is not None:
                self._chunks -= 1
                self._take(task, outcome, chunks)
            else:
                self._finish(task, outcome)
                self.run_bytes -= task.raw_bytes
                if runs is not None:
                    runs.advance(task.raw_bytes, task.item_count if task.array == "tokens" else 0)
        if chunks is not None:
            chunks.show_running(pool.running_bytes())

    def _take(self, chunk: TextChunk, outcome: worker.ChunkResult, stage: Stage) -> None:
        record, known = outcome.record, self._earlier.assembly.records[chunk.index]
        if (
            record.chunk_index != chunk.index
            or record.text_bytes != chunk.text_bytes
            or known not in (None, record)
        ):
            raise BadInput(
                f"{self._context.plan.describe(chunk)} is not what an earlier run read there; "
                f"start anew with --overwrite"
            )
        result = self._result
        if not outcome.reused:
            self._journal.finish(record)
            self._sync_journal()
        self._give_back_others(chunk.index, record)
        result.assembly.add(record)
        result.reused += outcome.reused
        result.lost["text chunk"] += known is not None and not outcome.reused
        self._bad_count += record.intake.skipped_count
        check_error_count(self._bad_count, self._context.options.max_errors)
        for step, seconds in outcome.seconds.items():
            result.seconds[step] = result.seconds.get(step, 0.0) + seconds
        stage.advance(self._context.plan.work_bytes(chunk), record.train.tokens + record.validation.tokens)

    def _give_back_others(self, index: int, record: ShardRecord) -> None:
        """The slots that the chunk has but whose files it has not for itself."""
        known, dealt = self._earlier.assembly.records[index], self._slots.pop(index, None)
        names = {name for name, _ in known.places} if known is not None else set()
        if dealt is not None:
            names.update(dealt.parts)
        names.difference_update(name for name, _ in record.places)
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
        for index, part in assembly.written(run, files):
            record = assembly.records[index]
            if record is not None:
                self._slot_files.give_back(record.shape.place(part)[0], index)

    def _sync_journal(self) -> None:
        if (now := time.monotonic()) >= self._next_sync:
            self._next_sync = now + _JOURNAL_SYNC_SECONDS
            self._context.syncer.add([self._journal.path], stays=True)
