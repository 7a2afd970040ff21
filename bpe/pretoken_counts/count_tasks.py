"""What a worker does for `count`: a text chunk -> a sorted run, later a range of keys of some runs -> their sum.

Tasks are pure (tokenmill/engines/engine.py): what an attempt writes counts for nothing until the driver has its result.
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

# What a task may take for counts and text that can't be cut; what outgrows it goes to the worker's disk.
TASK_BYTES = 1 << 30


class CountingJob(NamedTuple):
    """memory_bytes: what a worker process may take; None: TASK_BYTES beside what it takes when a task begins."""

    chunks: Chunks
    options: CountingOptions
    scratch: Scratch
    memory_bytes: int | None

    def prepare(self) -> None:
        """See `tokenmill.engines.job.Job`."""
        self.scratch.check_sight()


class ChunkCounts(NamedTuple):
    """What a text chunk came to. run None: nothing is in it."""

    run: RunFile | None
    text_bytes: int
    documents: int
    tally: Tally


class _Steps:
    """Tells the engine how far a task is."""

    def begin(self, phase: str, total: int | None, unit: str) -> None:
        """See Progress."""

    def update(self, done: int) -> None:
        """See Progress."""
        take_step(done)

    def note(self, text: str) -> None:
        """See Progress; the driver tells of all chunks together."""


def count_chunk(chunk: TextChunk, key: JobKey) -> ChunkCounts:
    """Count the text that starts in a text chunk. A compressed file is counted as a whole where it starts.

    InvalidText names the file and byte, BadInput a bad record or a file that changed, NotEnoughMemory a text that
    cannot be cut.
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
                require_unchanged(source, os.stat(source.path))  # noqa: PTH116 - of a million files
        counted = counting.finish("")
        run = job.scratch.keep(_steps(counted.blocks(workspace))) if counted.most_distinct else None
        facts = counted.facts
        return ChunkCounts(run, facts.text_bytes, facts.documents, counting.tally)


def merge_range(wanted: KeyRange, key: JobKey) -> RunFile:
    """The sum of what runs have in a range of keys, in memory that depends on their number alone."""
    scratch = find_job(key).scratch
    options = dict(scratch.options)
    run: RunFile = scratch.keep(_steps(merge_sorted(wanted.streams(scratch.place, options))))
    return run


def _steps(blocks: Iterable[Arrays]) -> Iterator[Arrays]:
    for block in blocks:
        take_step()
        yield block
