"""The long part of a conversion: text chunks become shards and shards become runs of the arrays, side by side.

    work = EncodeAndMerge(context)   takes over what an earlier run left
    work.begin(stage)                the workers have work
    work.encode()                    until the last text chunk is encoded
    work.merge(stage)                until the last run is written

A text chunk is encoded by one *lane*, a task for each shard one after the other, or by several where it is compressed
and workers would be idle: each of n lanes reads all of it and encodes every n-th shard. Runs are written as soon as the
shards that they read are there, and no new text is begun while too many bytes wait to be written, so a slow text chunk
does not fill the disk. What is done is noted in the log, all results that came together in one write, and taken over
after an interruption (convert/driver/resume.py).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from convert.driver.context import Context
from convert.driver.left_out import leave_out
from convert.driver.resume import resume
from convert.encode import worker
from convert.errors import BadInput, DataLost, StorageError
from convert.planning.plan import ShardId, TextChunk
from convert.shards.runs import Run
from convert.shards.shard import ShardRecord
from convert.shards.shard_reader import Damage
from convert.shards.write_run import WrittenFile
from convert.workdir.journal import run_entry
from flat_tokens.format import SPLITS
from flat_tokens.writer import create_arrays
from tokenmill.cli.progress import Stage
from tokenmill.engines.tasks import SHOW_SECONDS
from tokenmill.inputs.intake import check_error_count
from tokenmill.stores import StoreError

# So much work a power loss may cost that was noted before; a sync for each note would be as many as zarr chunks need.
_LOG_SYNC_SECONDS = 1.0
# While so many bytes of shards a worker wait to be written no new text is begun.
_UNMERGED_BYTES = 256 << 20
# Files of shards that are written go to the next tasks, to be written over or deleted.
_SPARES_A_TASK = 8


class Lane(NamedTuple):
    """Shards number, number + step, ... of a text chunk are encoded one after the other; step 0: that one alone."""

    chunk: TextChunk
    number: int
    step: int


class EncodeAndMerge:
    """Every text chunk of the plan is encoded and every run written, as tasks of the context's pool.

    Files of runs are synced, and the log by which they are taken over after a power loss. Shards are not: they are soon
    merged, and made again if they are lost. ledger: of all shards and runs; seconds: by step of the workers; reused:
    shards taken over; lost: what was done once but is damaged or gone, by what it is, and made again; run_bytes: of the
    runs that are not written.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._log = context.workspace.log
        self._recorded = self._log.recorded()
        leave_out(context, self._recorded)
        self._threshold: int | None = None
        if context.options.validation_docs is not None:
            from convert.driver.choose_held_out import choose_threshold

            self._threshold = choose_threshold(context, self._log, self._recorded)
        self.ledger, runs, lost_runs = resume(context, self._recorded)
        for split in SPLITS:
            create_arrays(
                context.workspace.dataset,
                split,
                context.layout,
                self.ledger.has_places,
                context.options.has_mask,
            )
        self.seconds: dict[str, float] = {}
        self.reused = self.ledger.shard_count
        self.lost = Counter({"output span": lost_runs})
        self.run_bytes = sum(run.raw_bytes for run in runs)
        self._runs: deque[Run] = deque(runs)  # to be submitted
        self._lanes: deque[Lane] = deque()  # to be submitted, of text chunks that are begun
        self._open_lanes: Counter[int] = Counter()  # by text chunk
        self._remaining: Iterator[TextChunk] = context.plan.chunks()
        self._spares: list[str] = []
        self._done_bytes: dict[int, int] = {}  # of text chunks that are begun, how much is shown as done
        self._waiting_runs: dict[ShardId, list[Run]] = {}  # for a damaged shard that is made again
        self._made_again: set[ShardId] = set()
        self._entries: list[dict[str, Any]] = []  # for the log
        self._next_sync = self._next_show = 0.0
        self._all_begun = False
        self._encoding = Stage("encode", 0)  # what is shown of it, since `begin`

    def begin(self, stage: Stage) -> None:
        """Give the workers the first tasks. stage: of the encoding."""
        self._encoding = stage
        stage.advance(0, self.ledger.token_count)
        self._submit()

    def encode(self) -> None:
        """Return when all text chunks are encoded; runs are written beside."""
        while self._open_lanes or not self._all_begun:
            self._take_results()
            if (now := time.monotonic()) >= self._next_show:
                self._next_show = now + SHOW_SECONDS
                self._encoding.show_running(self._running_bytes())
            self._submit()

    def merge(self, stage: Stage) -> None:
        """Return when all runs are written."""
        self._submit()
        while len(self._context.pool):
            for run in self._take_results():
                stage.advance(run.raw_bytes, run.item_count if run.array == "tokens" else 0)
            self._submit()
        self._log.flush()

    @contextmanager
    def noting_finished(self) -> Iterator[None]:
        """To be open while the workers are there: after an error what they finished meanwhile is noted in the log.

        Refused in place of an error by data that is gone or another, where another run has taken over.
        """
        try:
            yield
        except BaseException as error:
            with suppress(OSError, StoreError):  # what ended the work may stand in the way of this too
                self._note_finished()
                of_data = (BadInput.exit_code, DataLost.exit_code, StorageError.exit_code)
                if getattr(error, "exit_code", 0) in of_data:
                    self._log.confirm()
            raise

    def _note_finished(self) -> None:
        for task, outcome in self._context.pool.finished():
            if isinstance(task, Lane):
                self._entries += map(ShardRecord.as_json, outcome.records)
            elif isinstance(task, Run) and not isinstance(outcome, Damage):
                self._entries.append(run_entry(task, outcome))
        self._note()
        self._log.flush()

    # -- what is submitted

    def _submit(self) -> None:
        """As much as may be in flight: runs first, which make room."""
        for run in self.ledger.ready():
            self.run_bytes += run.raw_bytes
            self._runs.append(run)
        while self._runs:
            self._submit_run(self._runs.popleft())
        for _ in range(len(self._lanes)):
            lane = self._lanes.popleft()
            if self._has_room or lane.chunk.index <= self.ledger.next.chunk_index:
                self._submit_lane(lane)
            else:
                self._lanes.append(lane)
        while not self._all_begun and len(self._open_lanes) < self._window:
            if self._open_lanes and not self._has_room:
                break
            chunk = next(self._remaining, None)
            if chunk is None:
                self._all_begun = True
            else:
                self._begin_chunk(chunk)

    @property
    def _window(self) -> int:
        """How many text chunks are begun at a time: few, since what waits stands before the runs that make room."""
        return self._context.engine.worker_count + 2

    @property
    def _has_room(self) -> bool:
        return self.ledger.unmerged_bytes < _UNMERGED_BYTES * max(4, self._context.engine.worker_count)

    def _begin_chunk(self, chunk: TextChunk) -> None:
        """Begin the lanes that make what of the chunk is not there."""
        gaps, following = self.ledger.missing(chunk.index)
        lanes = [Lane(chunk, number, 0) for number in gaps]
        if following is not None:
            engine = self._context.engine
            count = self._context.plan.lane_count(chunk, engine.worker_count) if engine.can_stick else 1
            lanes += [Lane(chunk, following + lane, count) for lane in range(count)]
        if not lanes:
            self._encoding.advance(self._context.plan.work_bytes(chunk))
            return
        self._open_lanes[chunk.index] = len(lanes)
        self._done_bytes[chunk.index] = 0
        for lane in lanes:
            self._submit_lane(lane)

    def _submit_lane(self, lane: Lane) -> None:
        context, chunk = self._context, lane.chunk
        # A worker that keeps the chunk open is given shard after shard, and runs between them.
        keep_open = lane.step > 0 and context.engine.can_stick and context.plan.may_expand(chunk)
        context.pool.submit(
            lane,
            partial(context.plan.describe, chunk),
            worker.encode_chunk,
            chunk,
            context.job_key,
            self._take_spares(),
            self._threshold,
            lane.number,
            lane.step,
            not keep_open and lane.step > 0,
            sticky=(chunk.index, lane.number % lane.step) if keep_open else None,
        )

    def _submit_run(self, run: Run) -> None:
        if self._made_again:
            run = self.ledger.current(run)
        self._context.pool.submit(
            run, run.describe, worker.merge_run, run, self._context.job_key, self._take_spares()
        )

    def _take_spares(self) -> tuple[str, ...]:
        spares = tuple(self._spares[:_SPARES_A_TASK])
        del self._spares[:_SPARES_A_TASK]
        return spares

    # -- what follows from results

    def _take_results(self) -> list[Run]:
        """Wait for results, and take all there are; the runs that are written."""
        written = []
        try:
            for task, outcome in self._context.pool.done(SHOW_SECONDS):
                if isinstance(task, Lane):
                    self._take_lane(task, outcome)
                elif isinstance(task, ShardId):
                    self._take_again(task, outcome)
                elif isinstance(outcome, Damage):
                    self._make_again(task, outcome)
                else:
                    self._entries.append(run_entry(task, outcome))
                    self._take_run(task, outcome)
                    written.append(task)
        finally:
            self._note()
        return written

    def _take_lane(self, lane: Lane, outcome: worker.ChunkResult) -> None:
        """The next shards of a text chunk."""
        context, chunk = self._context, lane.chunk
        for record in outcome.records:
            text_bytes = chunk.text_bytes if record.is_last else 0
            if record.text_bytes != text_bytes or self._recorded.shard(record.id) not in (None, record):
                raise BadInput(
                    f"{context.plan.describe(chunk)}: changed since an earlier run read it. Start over with "
                    "--restart."
                )
            self._entries.append(record.as_json())
            self.ledger.add(record)
            self._encoding.advance(0, record.train.tokens + record.validation.tokens)
        check_error_count(self.ledger.bad_count, context.options.max_errors)
        for step, seconds in outcome.seconds.items():
            self.seconds[step] = self.seconds.get(step, 0.0) + seconds
        done_bytes = outcome.done_bytes
        if outcome.ended or not lane.step:
            self._open_lanes[chunk.index] -= 1
            if lane.step and context.engine.can_stick:
                context.engine.release((chunk.index, lane.number % lane.step))
        else:
            self._lanes.append(lane._replace(number=lane.number + lane.step * len(outcome.records)))
        before = self._done_bytes[chunk.index]
        if not self._open_lanes[chunk.index]:
            del self._open_lanes[chunk.index], self._done_bytes[chunk.index]
            done_bytes = context.plan.work_bytes(chunk)
        else:
            self._done_bytes[chunk.index] = max(before, done_bytes)
        self._encoding.advance(max(0, done_bytes - before))

    def _take_run(self, run: Run, files: list[WrittenFile]) -> None:
        self.run_bytes -= run.raw_bytes
        paths = self._context.workspace.on_disk(file.record.path for file in files)
        self._context.syncer.add(paths)
        self._spares += self.ledger.written(run, files)

    def _make_again(self, run: Run, damage: Damage) -> None:
        """A run found that a shard is not what its worker recorded: it is encoded again, once, and the run waits."""
        shard = damage.shard
        if shard in self._waiting_runs:
            self._waiting_runs[shard].append(run)
            return
        if self.ledger.current(run) != run:  # since this run was begun, the shard was made again
            self._submit_run(run)
            return
        if shard in self._made_again:
            raise DataLost(f"{damage.text} for the second time. Check the disk and memory of this machine.")
        self._made_again.add(shard)
        self._waiting_runs[shard] = [run]
        self.lost["temporary shard"] += 1
        self.reused -= shard in self._recorded.shards
        chunk = self._context.plan.chunk(shard.chunk_index)
        self._context.pool.submit(
            shard,
            partial(self._context.plan.describe, chunk),
            worker.encode_again,
            chunk,
            self._context.job_key,
            damage,
            self._take_spares(),
            self._threshold,
        )

    def _take_again(self, shard: ShardId, record: ShardRecord) -> None:
        former = self.ledger.record(shard)
        if record != former:
            chunk = self._context.plan.chunk(shard.chunk_index)
            raise DataLost(
                f"{self._context.plan.describe(chunk)}: its temporary shard was damaged, and encoding it again gave "
                "another result. Start over with --restart."
            )
        assert former is not None
        self._entries.append(record.as_json())
        self._spares += self.ledger.replace(record)
        self._runs.extend(self._waiting_runs.pop(shard))

    def _running_bytes(self) -> int:
        """How much tasks in flight have done, as far as they tell, beyond what is shown."""
        furthest: dict[int, int] = {}
        for task, done in self._context.pool.running():
            if isinstance(task, Lane):
                index = task.chunk.index
                furthest[index] = max(furthest.get(index, 0), done - self._done_bytes[index])
        return sum(furthest.values())

    def _note(self) -> None:
        """Put into the log what was taken since the last time, and have it synced now and then."""
        entries, self._entries = self._entries, []
        self._log.append(entries)
        if entries and (now := time.monotonic()) >= self._next_sync:
            self._next_sync = now + _LOG_SYNC_SECONDS
            self._context.syncer.add(self._log.files, stays=True)
