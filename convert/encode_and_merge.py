"""The long part of a conversion: text chunks become shards and shards become runs of the arrays, side by side.

Runs are written as soon as the shards they read are there, so the ids of few shards lie on the disk at a time. What is
done is noted in the journal as its result comes in. After an interruption that says which shards and runs there were;
what is still there, byte for byte, is taken over.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from convert import worker
from convert.errors import BadInput, Refused
from convert.held_out import SmallestHashes
from convert.intake import check_error_count, is_usable
from convert.journal import Journal, Recorded
from convert.options import ConvertOptions
from convert.plan import Plan, TextChunk
from convert.processes.tasks import TaskPool, run_tasks
from convert.progress import Progress, Stage
from convert.rules import IntakeRules
from convert.shards.assembly import Assembly, recorded_assembly
from convert.shards.runs import Run
from convert.shards.shard import SPLITS, ShardRecord
from convert.shards.slots import SlotFiles, Slots
from convert.touched import check_touched
from convert.workspace import Workspace
from flat_tokens.storage.durability import Syncer
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.writer import create_arrays

# So much work a power loss may cost that was noted before; a sync for each note would be as many as zarr chunks need.
_JOURNAL_SYNC_SECONDS = 1.0


@dataclass
class Result:
    """All shards' records, all files of the arrays; seconds by step of the workers; chunks taken over; what was done
    once but is damaged or gone, by what it is, and made again."""

    assembly: Assembly
    seconds: dict[str, float] = field(default_factory=dict)
    reused: int = 0
    lost: Counter[str] = field(default_factory=Counter)


def encode_and_merge(
    executor: Executor,
    pool: TaskPool,
    options: ConvertOptions,
    plan: Plan,
    layout: ArrayLayout,
    workspace: Workspace,
    progress: Progress,
    syncer: Syncer,
    meanwhile: Callable[[], None],
    encoded: Callable[[list[ShardRecord | None]], None],
) -> Result:
    """Encode every text chunk of the plan and write every run, as tasks of `pool`.

    syncer: of the files of runs, and of the journal by which they are taken over after a power loss. Shards are not
    synced: they are soon merged, and made again if they are lost. meanwhile() is called once the workers have work,
    encoded(records) when the last chunk is encoded.
    """
    journal = Journal(workspace.shards)
    recorded = journal.recorded()
    threshold = None
    if options.validation_docs is not None:
        threshold = _threshold(executor, options, plan, workspace, journal, recorded, progress)
    workers = options.worker_count
    earlier, written, lost_runs = _earlier_work(executor, workers, plan, layout, workspace, recorded)
    slots = SlotFiles(workspace.shards, earlier.held_files(recorded.shards))
    check_earlier(workspace.shards, earlier.records, options.intake_rules)
    if workspace.touched:
        check_touched(executor, workers, plan, workspace, earlier.records, progress)
        syncer.add([workspace.plan], stays=True)
    for split in SPLITS:
        create_arrays(workspace.dataset, split, layout)
    result = Result(Assembly(plan.chunk_count, layout))
    if lost_runs:
        result.lost["run"] = lost_runs
    # Few chunks ahead: what waits in the queue stands before the runs that would free the disk.
    loop = _Loop(
        plan,
        workspace,
        journal,
        slots,
        earlier,
        written,
        result,
        workers + 2,
        syncer,
        options.max_errors,
        threshold,
    )
    with closing_stage(progress.stage("encode", plan.total_bytes)) as stage:
        busy = loop.chunks_left(pool, stage)
        meanwhile()
        while busy:
            loop.collect(pool, stage, None)
            busy = loop.chunks_left(pool, stage)
    encoded(result.assembly.records)
    with closing_stage(progress.stage("merge", loop.run_bytes)) as stage:
        while len(pool):
            loop.collect(pool, None, stage)
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
        plan: Plan,
        workspace: Workspace,
        journal: Journal,
        slots: SlotFiles,
        earlier: Assembly,
        written: dict[tuple[str, str, int], list[FileRecord]],
        result: Result,
        window: int,
        syncer: Syncer,
        max_errors: int | None,
        threshold: int | None,
    ) -> None:
        self._max_errors, self._bad_count = max_errors, 0
        self._threshold = threshold
        self._plan, self._earlier, self._written = plan, earlier, written
        self._dataset, self._journal, self._syncer = workspace.dataset, journal, syncer
        self._slot_files = slots
        self._slots: dict[int, Slots] = {}  # of the chunks in flight
        self._next_sync = 0.0
        self._result, self._window = result, window
        self._remaining: Iterator[TextChunk] = plan.chunks()
        self._chunks = 0  # in flight
        self.run_bytes = 0  # of the runs in flight

    def chunks_left(self, pool: TaskPool, stage: Stage) -> bool:
        """Begin what may begin; whether chunks are still being encoded."""
        while self._chunks < self._window:
            chunk = next(self._remaining, None)
            if chunk is None:
                break
            record, parts = self._earlier.records[chunk.index], self._earlier.needed_parts(chunk.index)
            if record is not None and not parts:
                self._take(chunk, worker.ChunkResult(record, reused=True), stage)
                continue
            slots = self._slots[chunk.index] = self._slot_files.take(chunk.index)
            describe = partial(self._describe, chunk)
            pool.submit(chunk, describe, worker.encode_chunk, chunk, slots, self._threshold, record, parts)
            self._chunks += 1
        self._begin_runs(pool)
        return self._chunks > 0

    def collect(self, pool: TaskPool, chunks: Stage | None, runs: Stage | None) -> None:
        """Wait for results and do what follows from them."""
        for task, outcome in pool.done():
            if isinstance(task, TextChunk) and chunks is not None:
                self._chunks -= 1
                self._take(task, outcome, chunks)
            else:
                self._finish(task, outcome)
                self.run_bytes -= task.raw_bytes
                if runs is not None:
                    runs.advance(task.raw_bytes, task.item_count if task.array == "tokens" else 0)

    def _take(self, chunk: TextChunk, outcome: worker.ChunkResult, stage: Stage) -> None:
        record, known = outcome.record, self._earlier.records[chunk.index]
        if (
            record.chunk_index != chunk.index
            or record.text_bytes != chunk.text_bytes
            or known not in (None, record)
        ):
            raise BadInput(
                f"{self._describe(chunk)} is not what an earlier run read there; start anew with --overwrite"
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
        check_error_count(self._bad_count, self._max_errors)
        for step, seconds in outcome.seconds.items():
            result.seconds[step] = result.seconds.get(step, 0.0) + seconds
        stage.advance(chunk.text_bytes, record.train.tokens + record.validation.tokens)

    def _give_back_others(self, index: int, record: ShardRecord) -> None:
        """The slots that the chunk has but whose files it has not for itself."""
        known, dealt = self._earlier.records[index], self._slots.pop(index, None)
        names = {name for name, _ in known.places} if known is not None else set()
        if dealt is not None:
            names.update(dealt.parts)
        names.difference_update(name for name, _ in record.places)
        if dealt is not None:
            names.add(dealt.small)
        for name in names:
            self._slot_files.give_back(name, index)

    def _begin_runs(self, pool: TaskPool) -> None:
        for run in self._result.assembly.ready():
            files = self._written.get((run.split, run.array, run.first))
            if files is not None:
                self._keep(run, files)
            else:
                pool.submit(run, run.describe, worker.merge_run, run)
                self.run_bytes += run.raw_bytes

    def _finish(self, run: Run, files: list[FileRecord]) -> None:
        self._journal.finish_run(run, files)
        self._sync_journal()
        self._keep(run, files)

    def _keep(self, run: Run, files: list[FileRecord]) -> None:
        self._syncer.add(f"{self._dataset}/{file.path}" for file in files)
        assembly = self._result.assembly
        for index, part in assembly.written(run, files):
            record = assembly.records[index]
            if record is not None:
                self._slot_files.give_back(record.shape.place(part)[0], index)

    def _sync_journal(self) -> None:
        if (now := time.monotonic()) >= self._next_sync:
            self._next_sync = now + _JOURNAL_SYNC_SECONDS
            self._syncer.add([self._journal.path], stays=True)

    def _describe(self, chunk: TextChunk) -> str:
        return chunk.describe(self._plan.sources)


def _threshold(
    executor: Executor,
    options: ConvertOptions,
    plan: Plan,
    workspace: Workspace,
    journal: Journal,
    recorded: Recorded,
    progress: Progress,
) -> int:
    """The hash below which the documents of --validation-docs lie; reads the whole corpus, but only once."""
    count = options.validation_docs or 0
    known = recorded.threshold(count)
    if known is not None and not workspace.touched:
        return known
    smallest = SmallestHashes(count)
    choose = partial(worker.smallest_hashes, count=count)
    window = 4 * options.worker_count

    def describe(chunk: TextChunk) -> str:
        return chunk.describe(plan.sources)

    chunks = plan.chunks() if count else iter(())
    with closing_stage(progress.stage("choose", plan.total_bytes)) as stage:
        for chunk, hashes in run_tasks(executor, choose, chunks, window, describe):
            smallest.add(hashes)
            stage.advance(chunk.text_bytes)
    threshold = smallest.threshold()
    if known not in (None, threshold):
        raise Refused(
            f"an input is other text than when {workspace.root} was begun, though it has its former size and time: "
            f"other documents would be the {count} of --validation-docs; begin anew with --overwrite"
        )
    journal.keep_threshold(count, threshold)
    return threshold


def _earlier_work(
    executor: Executor,
    workers: int,
    plan: Plan,
    layout: ArrayLayout,
    workspace: Workspace,
    recorded: Recorded,
) -> tuple[Assembly, dict[tuple[str, str, int], list[FileRecord]], int]:
    """What can be taken over: the recorded shards, the files of the runs that are there and intact, how many are not.

    Everything else in the dataset's folder is removed.
    """
    earlier, runs = recorded_assembly(plan.chunk_count, layout, recorded)
    files_of = {id(files): (run, files) for run, files in runs}
    written: dict[tuple[str, str, int], list[FileRecord]] = {}
    tasks = [files for _, files in runs]
    for files, intact in run_tasks(
        executor, worker.are_intact, tasks, 4 * workers, lambda _: "a check of files"
    ):
        run, _ = files_of[id(files)]
        if intact:
            written[run.split, run.array, run.first] = files
            earlier.written(run, files)
    workspace.clean_dataset({file.path for files in written.values() for file in files})
    return earlier, written, len(runs) - len(written)


def check_earlier(shards: Path, records: Sequence[ShardRecord | None], rules: IntakeRules) -> None:
    """Refused (exit 6) if finished shards left out records that are to be treated in another way now."""
    for record in records:
        if record is not None and not is_usable(shards, record.chunk_index, record.intake, rules):
            raise Refused(
                f"bad records were left out of {shards.parent} in another way than --on-error {rules.on_error} "
                f"asks for now; go on with the former way, or begin anew with --overwrite"
            )


@contextmanager
def closing_stage(stage: Stage) -> Iterator[Stage]:
    """Close a stage's display whatever happens: the error's line must not stand in the middle of a bar."""
    try:
        yield stage
    except BaseException:
        stage.close(False)
        raise
    stage.close(True)
