"""What a worker does: text chunk -> shards, later runs of shards -> files of the dataset.

A worker is a thread, of whatever process. A task carries a text chunk or a run and the key of its job
(engines/job.py). What a thread keeps from task to task is its own. What a task writes counts for nothing until
the driver has noted its result in the log, so a task can be lost at any moment and done again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bpe.errors import InvalidText
from convert.encode.clock import Clock
from convert.encode.held_out import DocumentHasher
from convert.encode.job import Job
from convert.encode.open_chunk import OpenChunk
from convert.encode.read_chunk import ChunkReader
from convert.errors import BadInput, DataLost, naming
from convert.planning.plan import ShardId, TextChunk
from convert.shards.intake import ShardIntake
from convert.shards.runs import Run
from convert.shards.shard import ShardRecord
from convert.shards.shard_reader import Damage, DamagedShard
from convert.shards.write_run import WrittenFile, write_run
from flat_tokens.verify_units import verify_files
from flat_tokens.writer import place_of
from tokenmill.cli.failures import one_line
from tokenmill.engines.job import JobKey, find_job
from tokenmill.inputs.blocks import BLOCK_BYTES
from tokenmill.inputs.digest import first_changed
from tokenmill.inputs.documents import Buffers
from tokenmill.stores import StoreError

SourceParts = tuple[int, Sequence[tuple[int, int, str]]]  # source, (start, stop, hex digest) of parts of it


@dataclass(frozen=True)
class ChunkResult:
    """What comes back from a text chunk: the records of some of its shards, whether there are no others for the lane,
    about how much of the chunk's work is done by now, seconds by step."""

    records: tuple[ShardRecord, ...]
    ended: bool = True
    done_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


class _Worker(threading.local):
    """What a thread keeps: memory to read into, and a text chunk that is not encoded to its end."""

    def __init__(self) -> None:
        self.buffers = Buffers()
        # Packed text chunks, which may be open while others are encoded, have their own.
        self._packed_buffers = Buffers()
        self._open: OpenChunk | None = None  # one at most: its decoder may hold a window of 128 MiB

    @contextmanager
    def opened(self, job: Job, chunk: TextChunk, threshold: int | None, number: int) -> Iterator[OpenChunk]:
        """The text chunk, no further than its `number`-th shard; a packed one stays open until its last or an error."""
        if not job.plan.may_expand(chunk):
            with closing(OpenChunk(job, chunk, threshold, self.buffers)) as opened:
                yield opened
            return
        found = self._open
        if found is None or found.job is not job or found.chunk != chunk or found.number > number:
            self._close()
            block_bytes = min(BLOCK_BYTES, job.plan.shard_text_bytes)
            if self._packed_buffers.block_bytes != block_bytes:
                self._packed_buffers = Buffers(block_bytes)
            found = self._open = OpenChunk(job, chunk, threshold, self._packed_buffers)
        try:
            yield found
        except BaseException:
            self._close()
            raise
        if found.is_done:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


_worker = _Worker()


def encode_chunk(
    chunk: TextChunk,
    key: JobKey,
    spares: Sequence[str] = (),
    threshold: int | None = None,
    number: int = 0,
    step: int = 1,
    to_end: bool = True,
) -> ChunkResult:
    """Encode documents of a text chunk into its `number`-th shard, if it has so many.

    spares: files to write over (convert/shards/shard_files.py); those that are not needed are deleted. threshold: in
    place of the job's, if it came later. to_end: every step-th shard behind it too, up to the chunk's last. Else
    what is open stays so, and the shard `step` behind it is cheap if this worker gets it; any other reads the chunk
    from its beginning, and passes over what others encode.

    Some MiB at a time, so memory depends neither on the chunk nor on its documents.
    InvalidText (exit 3) names file and byte, BadInput a bad record or a file that changed, OSError what the system
    refused.
    """
    job: Job = find_job(key)
    records: list[ShardRecord] = []
    unused = list(spares)
    with _worker.opened(job, chunk, threshold, number) as opened:
        opened.clock.start()
        while not opened.is_done:
            if opened.number < number:
                opened.pass_over()
                continue
            records.append(opened.encode(unused))
            number += step
            if not to_end:
                break
    job.shards.delete(unused)
    return ChunkResult(tuple(records), opened.is_done, opened.done_bytes, opened.clock.seconds)


def encode_again(
    chunk: TextChunk, key: JobKey, damage: Damage, spares: Sequence[str], threshold: int | None
) -> ShardRecord:
    """Make a damaged shard once more from its sources; DataLost if they are not what they were."""
    try:
        records = encode_chunk(chunk, key, spares, threshold, damage.shard.number, 0, False).records
        if not records:
            raise BadInput("the input is shorter than before")
        return records[0]
    except (BadInput, InvalidText, StoreError, FileNotFoundError, PermissionError) as error:
        raise DataLost(f"{damage.text}, and its text cannot be encoded again: {one_line(error)}") from error


def smallest_hashes(chunk: TextChunk, key: JobKey, count: int) -> NDArray[np.uint64]:
    """The `count` smallest hashes of the chunk's documents, ascending; fewer if there are not so many."""
    job: Job = find_job(key)
    # What is to be done with bad records is done when the chunk is encoded; only those that end the work do it here.
    rules = (
        job.rules if job.rules.on_error == "fail" else job.rules._replace(on_error="skip", max_errors=None)
    )
    intake = ShardIntake(rules)
    intake.begin(ShardId(chunk.index))
    hasher = DocumentHasher(job, count, intake)
    reader = ChunkReader(job, chunk, _worker.buffers, intake, Clock(), with_digests=False)
    with closing(reader.documents()) as documents:
        for found in documents:
            with reader.noting_damage():
                hasher.take(found)
    return hasher.smallest.get()


def changed_part(sources: Sequence[SourceParts], key: JobKey) -> tuple[int, tuple[int, int]] | None:
    """The first source, and the first of its parts (start, stop, digest), that is not what it was when its shard was
    made."""
    for source_index, parts in sources:
        changed = first_changed(find_job(key).plan.sources[source_index], parts)
        if changed is not None:
            return source_index, changed
    return None


def merge_run(run: Run, key: JobKey, unneeded: Sequence[str] = ()) -> list[WrittenFile] | Damage:
    """Write one run of the dataset's arrays; its files, or which of its shards is damaged. unneeded: files of shards
    that are written, to be deleted."""
    job: Job = find_job(key)
    job.shards.delete(unneeded)
    try:
        with naming(f"{place_of(job.dataset)}/{run.split}"):
            return write_run(job.dataset, job.shards, job.layout, run, job.temporary, job.has_mask)
    except DamagedShard as error:
        return error.damage


def are_intact(files: list[WrittenFile], key: JobKey) -> bool:
    """Whether files of the dataset are there with every byte they were written with."""
    return not verify_files(place_of(find_job(key).dataset), tuple(file.record for file in files)).problems
