"""The tasks that encode: documents are read from a text chunk, screened, encoded and written to temporary shards.

A task counts only once the driver has recorded its result, so it can be lost and repeated at any time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert.encode.document_encoder import DocumentEncoder
from convert.encode.document_screen import DocumentScreen
from convert.encode.held_out import DocumentHasher, hash_threshold
from convert.encode.job import Clock, Job
from convert.errors import BadInput
from convert.planning.plan import Plan, ShardId, TextChunk
from convert.shards.intake import ShardIntake
from convert.shards.shard import ShardRecord
from convert.shards.shard_writer import ShardWriter
from tokenmill.engines.job import JobKey, find_job
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.documents import Buffers, Event, Reading, UnpackedBlock
from tokenmill.inputs.sources import require_unchanged
from tokenmill.stores import RandomFile

READ_BYTES = 4 << 20
_memory = threading.local()  # buffers, kept from task to task so that their pages are touched once


class ChunkResult(NamedTuple):
    """Shards that a task has encoded. seconds: by step."""

    records: list[ShardRecord]
    seconds: dict[str, float]


def encode_chunk(
    chunk: TextChunk, done: Container[int], key: JobKey, threshold: int | None = None
) -> ChunkResult:
    """Encode a text chunk and return its shards, except the numbers in `done`.

    threshold: instead of the one of the fraction, if it was not known when the job was handed out.

    Memory depends neither on the chunk nor on its documents. InvalidText (exit 3) names a file and a byte, BadInput a
    bad record or a file that changed.
    """
    clock = Clock()
    shards = encoded_shards(find_job(key), chunk, threshold, clock, is_wanted=lambda n: n not in done)
    return ChunkResult(list(shards), clock.seconds)


def encode_again(records: Sequence[ShardRecord], key: JobKey, threshold: int | None = None) -> None:
    """Encode shards of one text chunk that are missing or damaged.

    BadInput if they differ from their records, because the sources changed.
    """
    job: Job = find_job(key)
    chunk = job.plan.chunk(records[0].id.chunk_index)
    numbers = {record.id.number for record in records}
    again = encoded_shards(job, chunk, threshold, Clock(), is_wanted=numbers.__contains__)
    if list(again) != list(records):
        raise changed_chunk(job.plan, chunk)


def changed_chunk(plan: Plan, chunk: TextChunk) -> BadInput:
    """Return the error for a text chunk that gives other shards than in an earlier run."""
    return BadInput(
        f"{plan.describe(chunk)}: changed since an earlier run read it. Start over with --restart."
    )


def smallest_hashes(chunk: TextChunk, key: JobKey, count: int) -> NDArray[np.uint64]:
    """Return the `count` smallest hashes of the documents of a text chunk, ascending."""
    job: Job = find_job(key)
    if job.rules.on_error != "fail":  # bad records are reported when the chunk is encoded
        job = replace(job, rules=job.rules._replace(on_error="skip", max_errors=None))
    hasher = DocumentHasher(job, count)
    for _ in encoded_shards(job, chunk, None, Clock(), sink=hasher, is_wanted=lambda number: False):
        pass
    return hasher.smallest.kept


class Block(NamedTuple):
    """A block: the text of one shard of a text chunk, unpacked to a file.

    number: of the shard.
    start: offset of its first byte in the unpacked text.
    size: bytes of text, which the file may continue after.
    first_line: number of its first line, from 0.
    is_last: whether the text of the compressed file ends with it.
    damage: the error that ended the text, or "".
    """

    number: int
    start: int
    size: int
    first_line: int
    is_last: bool
    damage: str


def encoded_shards(
    job: Job,
    chunk: TextChunk,
    threshold: int | None,
    clock: Clock,
    block: Block | None = None,
    file: RandomFile | None = None,
    sink: DocumentHasher | None = None,
    is_wanted: Callable[[int], bool] = lambda number: True,
) -> Iterator[ShardRecord]:
    """Encode the shards of a text chunk in order. Keep and yield the shards that `is_wanted` selects by number.

    A shard ends at a document boundary that depends on the text alone.

    block, file: encode only this block of the chunk.
    sink: takes the documents instead of the shards.
    """
    plan = job.plan
    threshold = hash_threshold(job.options.fraction) if threshold is None else threshold
    intake = ShardIntake(job.rules, None if block is None else block.first_line)
    start = 0  # of the shard in the text
    text = None if block is None or file is None else UnpackedBlock(file, block.start, block.size)
    with closing(_read(job, chunk, intake, text)) as events:
        for number in count() if block is None else [block.number]:
            with (
                job.shards.folder(job.temporary) as folder,
                closing(ShardWriter(folder, ShardId(chunk.index, number), job)) as writer,
            ):
                intake.begin(writer.quarantine)
                encoder = sink or DocumentEncoder(job, threshold, writer, clock)
                screen = DocumentScreen(job, intake, encoder, clock, folder)
                is_last = block is None or block.is_last
                for reading, event, text_bytes in events:
                    screen.add(reading, event)
                    if event is None and block is None and text_bytes >= start + plan.shard_text_bytes:
                        start, is_last = text_bytes, False
                        break
                if block is not None and block.damage:
                    source_index = next(plan.pieces(chunk)).source_index
                    intake.bad_file(source_index, plan.sources[source_index], BadInput(block.damage))
                record = writer.finish(vars(intake), is_last, chunk.text_bytes if is_last else 0)
                if is_wanted(number):
                    job.shards.keep(folder)
                    clock.lap("write")
                    yield record
            if is_last:
                return


def _read(
    job: Job, chunk: TextChunk, intake: ShardIntake, block: UnpackedBlock | None
) -> Generator[tuple[Reading, Event, int], None, None]:
    """Yield (reading, event, bytes of text so far from compressed and encoded sources).

    Each event is valid until the next.

    intake: counts the records.
    block: read this unpacked block of the chunk's only source instead.
    """
    plan, done_bytes, decoded_bytes = job.plan, 0, 0
    for piece in plan.pieces(chunk):
        source = plan.sources[piece.source_index]
        to = (intake, job.separator, thread_buffers(job))
        try:
            reading = Reading(piece.source_index, source, piece, *to, block=block)
        except PermissionError as error:
            intake.bad_file(piece.source_index, source, error)
            continue
        with reading:
            if block is None:
                require_unchanged(source, reading.file.status())
            with closing(reading.documents()) as events:
                for event in events:
                    take_step(done_bytes=done_bytes + reading.done_bytes)
                    yield reading, event, decoded_bytes + reading.decoded_bytes
            if block is None:
                require_unchanged(source, reading.file.status())
        done_bytes += plan.piece_work_bytes(piece)
        decoded_bytes += reading.decoded_bytes


def thread_buffers(job: Job) -> Buffers:
    """Return the memory of this thread for text."""
    block_bytes = min(READ_BYTES, job.plan.shard_text_bytes)
    buffers: Buffers | None = getattr(_memory, "buffers", None)
    if buffers is None or buffers.block_bytes != block_bytes:
        buffers = _memory.buffers = Buffers(block_bytes)
    return buffers
