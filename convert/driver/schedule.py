"""The main stage of a conversion: text chunks are encoded into shards while finished shards are merged into arrays.

    work = EncodeAndMerge(context, recorded, resume(context, recorded, threshold), threshold)
    work.begin(stage)                the workers get their first tasks
    work.encode()                    returns when all text chunks are encoded
    work.merge(stage)                returns when all arrays are written

Merge tasks come first, because they free scratch space, then unpacked blocks, then text chunks. No text chunk starts
while too many bytes wait to be merged. A large compressed file is unpacked by one task into blocks, which other tasks
encode while it unpacks the next ones. A task of a job array merges nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from convert.driver.context import Context
from convert.driver.resume import Resumed
from convert.encode import encode_task
from convert.errors import BadInput, DataLost, StorageError
from convert.planning.plan import ShardId, TextChunk
from convert.shards.merge import MergeTask, merge
from convert.workdir.journal import Recorded, merge_entry
from flat_tokens.format import SPLITS
from flat_tokens.writer import create_arrays
from tokenmill.cli.progress import Stage
from tokenmill.engines.tasks import SHOW_SECONDS
from tokenmill.inputs.intake import check_error_count
from tokenmill.stores import StoreError

UNMERGED_BYTES = 256 << 20  # of shards per worker
POLL_SECONDS = 0.1  # between two looks for an unpacked block; on a store, SHOW_SECONDS
UNPACKED_SHARE = 2  # files larger than the corpus / (this * workers) are unpacked


class ChunkTask(NamedTuple):
    """Encodes or unpacks a text chunk, or with a number encodes one unpacked block of it."""

    chunk: TextChunk
    number: int | None = None


@dataclass
class _OpenChunk:
    """A text chunk that was started.

    tasks: in flight.
    done: numbers of its shards from an earlier run.
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


class EncodeAndMerge:
    """Encodes all text chunks and writes all arrays with the tasks of the context's pool.

    threshold: from --validation-docs, or None.

    ledger: the state of all shards and arrays.
    seconds: of the workers, by step.
    reused: shards of an earlier run.
    """

    def __init__(
        self, context: Context, recorded: Recorded, resumed: Resumed, threshold: int | None = None
    ) -> None:
        self._context, self._recorded, self._threshold = context, recorded, threshold
        self._log, self.ledger = context.workspace.log, resumed.ledger
        self._merges_nothing = context.options.share is not None
        self._merges = [] if self._merges_nothing else resumed.tasks
        self.seconds: dict[str, float] = {}
        self.reused = self.ledger.shard_count - resumed.lost["temporary shard"]
        self._remaining = map(context.plan.chunk, context.plan.share(context.options.share))
        self._following = next(self._remaining, None)
        self._open: dict[int, _OpenChunk] = {}
        self._unneeded: list[str] = []  # files of merged shards, to be deleted by the next tasks
        self._entries: list[dict[str, Any]] = []  # for the log
        self._next_show = 0.0
        self._encoding = Stage("encode", 0)

    def encode(self, stage: Stage) -> None:
        """Return when all text chunks are encoded. Merge tasks run at the same time."""
        context = self._context
        for split in SPLITS:
            create_arrays(context.workspace.dataset, split, context.layout, has_mask=context.options.has_mask)
        self._encoding = stage
        stage.advance(0, self.ledger.token_count)
        self._submit()
        while self._open or self._following is not None:
            self._take_results(POLL_SECONDS)
            if (now := time.monotonic()) >= self._next_show:
                self._next_show = now + SHOW_SECONDS
                running = context.pool.running()  # unpacking includes its blocks
                own = (done for task, done in running if isinstance(task, ChunkTask) and task.number is None)
                self._encoding.show_running(sum(own))
            self._submit()

    def merge(self, stage: Stage) -> None:
        """Return when all arrays are written."""
        while len(self._context.pool):
            for task in self._take_results(SHOW_SECONDS):
                stage.advance(task.raw_bytes, task.item_count if task.array == "tokens" else 0)
        self._log.flush()

    @property
    def run_bytes(self) -> int:
        """The bytes of the merge tasks in flight."""
        running = self._context.pool.running()
        return sum(task.raw_bytes for task, _ in running if isinstance(task, MergeTask))

    @contextmanager
    def noting_finished(self) -> Iterator[None]:
        """Record tasks that finish while an error ends the run. Keep it open as long as the workers run.

        If the error is about data and another run has taken over, raise Refused instead.
        """
        try:
            yield
        except BaseException as error:
            with suppress(OSError, StoreError):  # the error may prevent this, too
                for task, outcome in self._context.pool.finished():
                    if isinstance(task, MergeTask):
                        self._entries.append(merge_entry(task, outcome))
                    elif not isinstance(outcome, int):
                        self._entries += (record.as_json() for record in outcome.records)
                self._note()
                self._log.flush()
                of_data = (BadInput.exit_code, DataLost.exit_code, StorageError.exit_code)
                if getattr(error, "exit_code", 0) in of_data:
                    self._log.confirm()
            raise

    # Submitting tasks

    def _submit(self) -> None:
        """Submit all merge tasks, and as much text as there is room for."""
        self._merges += () if self._merges_nothing else self.ledger.ready()
        for task in self._merges:
            unneeded, self._unneeded = self._unneeded, []
            arguments = task, self._context.job_key, unneeded
            self._context.pool.submit(task, task.describe, merge, *arguments, name=task.name)
        self._merges.clear()
        for opened in list(self._open.values()):
            self._submit_blocks(opened)
            if not opened.tasks and not opened.has_blocks:
                del self._open[opened.chunk.index]
                self._encoding.advance(self._context.plan.work_bytes(opened.chunk))
        while (chunk := self._following) and self._has_slot and (self._has_room or not self._open):
            self._start(chunk)
            self._following = next(self._remaining, None)

    @property
    def _has_slot(self) -> bool:
        """Whether few tasks of text chunks are in flight, because merge tasks queue after them."""
        in_flight = sum(opened.tasks for opened in self._open.values())
        return in_flight < self._context.engine.worker_count + 2

    @property
    def _has_room(self) -> bool:
        """Whether few bytes wait to be merged."""
        limit = UNMERGED_BYTES * max(4, self._context.engine.worker_count)
        return self._merges_nothing or self.ledger.unmerged_bytes < limit

    def _start(self, chunk: TextChunk) -> None:
        """Submit the first task of a text chunk, unless an earlier run has encoded it."""
        done, is_whole = self.ledger.done(chunk.index)
        if is_whole:
            self._encoding.advance(self._context.plan.work_bytes(chunk))
            return
        unpacks = self._is_to_be_unpacked(chunk)
        self._open[chunk.index] = _OpenChunk(chunk, done, next_block=0 if unpacks else None)
        function = encode_task.unpack_chunk if unpacks else encode_task.encode_chunk
        self._submit_task(ChunkTask(chunk), function, chunk, done)

    def _is_to_be_unpacked(self, chunk: TextChunk) -> bool:
        """Return whether other workers would be idle at the end if one of them encoded this chunk alone."""
        plan, workers = self._context.plan, self._context.engine.worker_count
        unpacking = sum(opened.next_block is not None for opened in self._open.values())
        is_long = chunk.text_bytes * UNPACKED_SHARE * workers > plan.total_bytes
        return is_long and unpacking < workers - 1 and plan.can_unpack(chunk)

    def _submit_blocks(self, opened: _OpenChunk) -> None:
        """Submit tasks for the blocks of a chunk that are unpacked by now."""
        is_next = opened.chunk.index == self.ledger.next.chunk_index
        while opened.has_blocks and self._has_slot:
            shard = ShardId(opened.chunk.index, opened.next_block or 0)
            if shard.number not in opened.done:
                if not (is_next or self._has_room) or not self._is_unpacked(opened, shard):
                    return
                task = ChunkTask(opened.chunk, shard.number)
                self._submit_task(task, encode_task.encode_block, shard)
            opened.next_block = shard.number + 1

    def _is_unpacked(self, opened: _OpenChunk, shard: ShardId) -> bool:
        if opened.block_count is not None:
            return True
        if time.monotonic() < opened.next_poll:
            return False
        if self._context.workspace.shard_store.is_unpacked(shard):
            return True
        is_local = self._context.workspace.shard_store.store.is_local
        opened.next_poll = time.monotonic() + (POLL_SECONDS if is_local else SHOW_SECONDS)
        return False

    def _submit_task(self, task: ChunkTask, function: Callable[..., Any], *args: Any) -> None:
        context = self._context
        self._open[task.chunk.index].tasks += 1
        context.pool.submit(
            task,
            partial(context.plan.describe, task.chunk),
            partial(function, *args, key=context.job_key, threshold=self._threshold),
            name=f"encode-{task.chunk.index}",
        )

    # Results

    def _take_results(self, seconds: float) -> list[MergeTask]:
        """Wait for results, at most so many seconds, and process them. Return the finished merge tasks."""
        written = []
        try:
            for task, outcome in self._context.pool.done(seconds):
                if isinstance(task, MergeTask):
                    self._entries.append(merge_entry(task, outcome))
                    self._unneeded += self.ledger.written(task, outcome)
                    written.append(task)
                    continue
                opened = self._open[task.chunk.index]
                opened.tasks -= 1
                if isinstance(outcome, int):
                    opened.block_count = outcome
                else:
                    self._add(task.chunk, outcome)
        finally:
            self._note()
        return written

    def _add(self, chunk: TextChunk, result: encode_task.ChunkResult) -> None:
        """Add the shards of a task to the ledger and to the log."""
        context = self._context
        for record in result.records:
            if self._recorded.shards.get(record.id, record) != record:
                raise encode_task.changed_chunk(context.plan, chunk)
            self._entries.append(record.as_json())
            self.ledger.add(record)
            self._encoding.advance(0, record.train.tokens + record.validation.tokens)
        check_error_count(self.ledger.bad_count, context.options.max_errors)
        for step, seconds in result.seconds.items():
            self.seconds[step] = self.seconds.get(step, 0.0) + seconds

    def _note(self) -> None:
        """Append the entries since the last call to the log."""
        entries, self._entries = self._entries, []
        self._log.append(entries)
