"""The tasks of `count` on workers: text chunk -> sorted run, and a range of keys of several runs -> their sum.

Tasks are pure (tokenmill/engines/engine.py): files of an attempt are used only after the driver has its result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bpe.pretoken_counts.chunk_text import Cuts
from bpe.pretoken_counts.counting import Counting
from bpe.pretoken_counts.counting_options import CountingOptions
from bpe.pretoken_counts.counts_facts import Arrays
from bpe.pretoken_counts.memory import MemoryBudget, used_bytes
from bpe.pretoken_counts.merge_counts import merge_sorted
from bpe.pretoken_counts.runs import KeyRange, RunFile
from bpe.pretoken_counts.scratch import Scratch
from bpe.pretoken_counts.tally import Tally
from bpe.pretoken_counts.workspace import Workspace
from tokenmill.engines.job import JobKey, find_job
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.chunks import Chunks, TextChunk
from tokenmill.inputs.sources import require_unchanged

# Memory per task for counts and for text that cannot be cut. Counts beyond it are spilled to the worker's disk.
TASK_BYTES = 1 << 30


class CountingJob(NamedTuple):
    """The job of counting text chunks.

    memory_bytes: memory limit of a worker process; None: TASK_BYTES more than it uses when a task begins.
    """

    chunks: Chunks
    options: CountingOptions
    scratch: Scratch
    memory_bytes: int | None

    def prepare(self) -> None:
        """See `tokenmill.engines.job.Job`."""
        self.scratch.check_sight()


class ChunkCounts(NamedTuple):
    """The counts of a text chunk. run: None if the chunk has no pretokens."""

    run: RunFile | None
    text_bytes: int
    documents: int
    tally: Tally


class _Steps:
    """Reports the progress of a task to the engine."""

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        """See Progress."""

    def update(self, done: int) -> None:
        """See Progress."""
        take_step(done)

    def note(self, text: str) -> None:
        """See Progress. The driver shows notes for all chunks together."""


def count_chunk(chunk: TextChunk, key: JobKey) -> ChunkCounts:
    """Count the text that starts in a text chunk. A compressed file belongs to the chunk in which it starts.

    Raise InvalidText with the file and byte, BadInput for a bad record or a file that changed, and NotEnoughMemory for
    text that cannot be cut.
    """
    job: CountingJob = find_job(key)
    budget = MemoryBudget(job.memory_bytes or used_bytes() + TASK_BYTES, job.memory_bytes is not None)
    with Workspace() as workspace:
        counting = Counting(job.options, _Steps(), budget, workspace)
        cuts = Cuts(
            counting.counter.last_cut if counting.counter.may_cut else None,
            [token.encode() for token in job.options.special_tokens],
            job.chunks.chunk_bytes,
            of_documents=bool(job.options.text_separator),
        )
        for piece in job.chunks.pieces(chunk):
            source = job.chunks.sources[piece.source_index]
            part = cuts.part(source, piece)
            if part is None:
                continue
            counting.count(part)
            if not source.version:
                require_unchanged(source, os.stat(source.path))  # noqa: PTH116 - called for up to a million files
        counted = counting.finish("")
        run = job.scratch.keep(_steps(counted.blocks(workspace))) if counted.most_distinct else None
        facts = counted.facts
        return ChunkCounts(run, facts.text_bytes, facts.documents, counting.tally)


def merge_range(wanted: KeyRange, key: JobKey) -> RunFile:
    """Merge the counts of several runs in a range of keys. The memory depends only on the number of runs."""
    scratch = find_job(key).scratch
    options = dict(scratch.options)
    run: RunFile = scratch.keep(_steps(merge_sorted(wanted.streams(scratch.place, options))))
    return run


def _steps(blocks: Iterable[Arrays]) -> Iterator[Arrays]:
    for block in blocks:
        take_step()
        yield block
