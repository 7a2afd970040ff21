"""What a worker process does: text chunk -> shards, later runs of shards -> files of the dataset.

A process is prepared once with its `Job` (under fork it inherits the loaded tokenizer, nothing is sent), then tasks
carry only a text chunk or a run. What a task writes counts for nothing until the parent has noted its result in the
journal, so a task can be lost at any moment and done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from convert.clock import Clock
from convert.errors import BrokenInvariant, naming
from convert.held_out import DocumentHasher
from convert.inputs.blocks import BLOCK_BYTES
from convert.inputs.digest import first_changed
from convert.intake import Intake
from convert.job import Job
from convert.open_chunk import OpenChunk
from convert.plan import ShardId, TextChunk
from convert.read_chunk import ChunkReader, Rooms
from convert.shards.merge import write_run
from convert.shards.runs import Run
from convert.shards.shard import PARTS, ShardRecord, is_intact
from convert.shards.slots import Slots
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.verify_units import verify_files

SourceParts = tuple[int, Sequence[tuple[int, int, str]]]  # source, (start, stop, hex digest) of parts of it


@dataclass(frozen=True)
class ChunkResult:
    """What comes back from a text chunk: the records of its next shards, whether they were there from an earlier run,
    about how much of the chunk's work is done by now, seconds by step."""

    records: tuple[ShardRecord, ...]
    reused: bool = False
    done_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


_job: Job | None = None
_rooms = Rooms()
# Packed text chunks, which may be open while others are encoded, have their own.
_packed_rooms = Rooms()
_open: OpenChunk | None = None  # one at most: its decoder may hold a window of 128 MiB


def prepare(job: Job) -> None:
    """Make this process ready for the tasks of `job`."""
    global _job, _packed_rooms
    _job = job
    _close()
    _packed_rooms = Rooms(min(BLOCK_BYTES, job.plan.shard_text_bytes))
    job.tokenizer.encode_documents(b"")  # builds the encoder where it was not inherited


def _prepared() -> Job:
    if _job is None:
        raise BrokenInvariant("a task came to a worker that was not prepared")
    return _job


def encode_chunk(
    chunk: TextChunk,
    slots: Slots,
    threshold: int | None = None,
    number: int = 0,
    earlier: ShardRecord | None = None,
    needed_parts: tuple[str, ...] = PARTS,
    to_end: bool = True,
) -> ChunkResult:
    """Encode documents of a text chunk into its `number`-th shard, or take over that of an earlier run if it is intact.

    slots: the files to write to. threshold: in place of the job's, if it came later. earlier: the record of an earlier
    run's shard; needed_parts: those of PARTS that have to be there for it to be taken over. to_end: the shards behind
    it too, up to the chunk's last. Else what is open stays so, and the next shard is cheap if this worker gets it; any
    other reads the chunk from its beginning, and passes over what is encoded.

    Some MiB at a time, so memory depends neither on the chunk nor on its documents.
    InvalidText (exit 3) names file and byte, BadInput a bad record or a file that changed, OSError what the system
    refused.
    """
    job = _prepared()
    if earlier is not None and is_intact(job.shards, earlier, needed_parts):
        return ChunkResult((earlier,), reused=True)
    records: list[ShardRecord] = []
    with _opened(job, chunk, threshold, number) as opened:
        while opened.number < number:
            opened.pass_over()
        opened.clock.start()
        while not records or (to_end and not records[-1].is_last):
            records.append(opened.encode(slots))
    return ChunkResult(tuple(records), False, opened.done_bytes, opened.clock.seconds)


@contextmanager
def _opened(job: Job, chunk: TextChunk, threshold: int | None, number: int) -> Iterator[OpenChunk]:
    """The text chunk, no further than its `number`-th shard; a packed one stays open until its last or an error."""
    global _open
    if not job.plan.is_packed(chunk):
        with closing(OpenChunk(job, chunk, threshold, _rooms)) as opened:
            yield opened
        return
    if _open is None or _open.chunk != chunk or _open.number > number:
        _close()
        _open = OpenChunk(job, chunk, threshold, _packed_rooms)
    try:
        yield _open
    except BaseException:
        _close()
        raise
    if _open.is_done:
        _close()


def _close() -> None:
    global _open
    if _open is not None:
        _open.close()
        _open = None


def smallest_hashes(chunk: TextChunk, count: int) -> NDArray[np.uint64]:
    """The `count` smallest hashes of the chunk's documents, ascending; fewer if there are not so many."""
    job = _prepared()
    # What is to be done with bad records is done when the chunk is encoded; only those that end the work do it here.
    rules = (
        job.rules if job.rules.on_error == "fail" else job.rules._replace(on_error="skip", max_errors=None)
    )
    intake = Intake(rules, job.shards)
    intake.begin(ShardId(chunk.index))
    special_tokens = [token.encode() for token in job.tokenizer.special_tokens]
    hasher = DocumentHasher(special_tokens, job.separator, job.seed, count, intake)
    reader = ChunkReader(job, chunk, _rooms, intake, Clock(), with_digests=False)
    with closing(reader.documents()) as documents:
        for give in documents:
            if give is not None:
                give(hasher)
    return hasher.smallest.get()


def changed_part(sources: Sequence[SourceParts]) -> tuple[int, tuple[int, int]] | None:
    """The first source, and the first of its parts (start, stop, digest), that is not what it was when its shard was
    made."""
    for source_index, parts in sources:
        changed = first_changed(_prepared().plan.sources[source_index].path, parts)
        if changed is not None:
            return source_index, changed
    return None


def merge_run(run: Run) -> list[FileRecord]:
    """Write one run of the dataset's arrays; the records of its files."""
    job = _prepared()
    with naming(job.dataset / run.split):
        return write_run(job.dataset, job.shards, job.layout, run)


def are_intact(files: list[FileRecord]) -> bool:
    """Whether files of the dataset are there with every byte they were written with."""
    return not verify_files(_prepared().dataset, tuple(files)).problems
