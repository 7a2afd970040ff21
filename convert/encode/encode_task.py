"""The tasks of encoding: a text chunk becomes one or more temporary shards.

A task counts only once the driver has recorded its result, so it can be lost and repeated at any time.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convert.encode.document_encoder import DocumentEncoder
from convert.encode.document_screen import DocumentScreen
from convert.encode.held_out import DocumentHasher, hash_threshold
from convert.encode.job import Clock, Job
from convert.errors import BadInput, DataLost, naming
from convert.planning.plan import Plan, ShardId, TextChunk
from convert.shards.intake import ShardIntake
from convert.shards.shard import ShardRecord, file_name
from convert.shards.shard_store import BlockState
from convert.shards.shard_writer import ShardWriter
from tokenmill.engines.job import JobKey, find_job
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.documents import DAMAGE, Buffers, Event, Reading, UnpackedBlock
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.read_jsonl import line_blocks
from tokenmill.inputs.read_text import text_blocks
from tokenmill.inputs.sources import require_unchanged
from tokenmill.stores import RandomFile, StoreNotFound, open_file

MAX_BLOCKS = 4  # unpacked blocks of a file that wait to be encoded
READ_BYTES = 4 << 20


_memory = (
    threading.local()
)  # buffers of a thread, kept from task to task so that their pages are touched once


@dataclass(frozen=True)
class ChunkResult:
    """Shards that a task has encoded. seconds: by step."""

    records: tuple[ShardRecord, ...]
    seconds: dict[str, float] = field(default_factory=dict)


def encode_chunk(
    chunk: TextChunk, done: Container[int], key: JobKey, threshold: int | None = None
) -> ChunkResult:
    """Encode a text chunk and return its shards, except the numbers in `done`.

    threshold: instead of the one of the fraction, if it was not known when the job was handed out.

    Memory depends neither on the chunk nor on its documents. InvalidText (exit 3) names a file and a byte, BadInput a
    bad record or a file that changed.
    """
    encoder = _Encoder(find_job(key), threshold)
    return ChunkResult(tuple(encoder.shards(chunk, lambda number: number not in done)), encoder.clock.seconds)


def encode_again(records: Sequence[ShardRecord], key: JobKey, threshold: int | None = None) -> None:
    """Encode shards of one text chunk that are missing or damaged.

    BadInput if they differ from their records, because the sources changed.
    """
    job: Job = find_job(key)
    chunk = job.plan.chunk(records[0].id.chunk_index)
    numbers = {record.id.number for record in records}
    if tuple(_Encoder(job, threshold).shards(chunk, numbers.__contains__)) != tuple(records):
        raise changed_chunk(job.plan, chunk)


def changed_chunk(plan: Plan, chunk: TextChunk) -> BadInput:
    """Return the error for a text chunk that gives other shards than in an earlier run."""
    return BadInput(
        f"{plan.describe(chunk)}: changed since an earlier run read it. Start over with --restart."
    )


def encode_block(shard: ShardId, key: JobKey, threshold: int | None = None) -> ChunkResult:
    """Encode an unpacked block, and replace it by the record of its shard."""
    job: Job = find_job(key)
    encoder = _Encoder(job, threshold)
    state, name = job.shards.block_state(shard), file_name(shard, "block")
    # The unpacking task, or an attempt with a lost result, may have encoded it.
    if isinstance(state, BlockState):
        try:
            with job.shards.open(name) as file:
                record = encoder.block(shard, state, file)
            job.shards.put_block_state(shard, record)
            job.shards.store.delete([name])
            return ChunkResult((record,), encoder.clock.seconds)
        except StoreNotFound:  # another attempt was faster
            state, name = job.shards.block_state(shard), file_name(shard, "block")
    if not isinstance(state, ShardRecord):
        raise DataLost(f"{job.shards.where(name)}: missing. Run the same command again.")
    return ChunkResult((state,))


def smallest_hashes(chunk: TextChunk, key: JobKey, count: int) -> NDArray[np.uint64]:
    """Return the `count` smallest hashes of the documents of a text chunk, ascending."""
    job: Job = find_job(key)
    # Bad records are reported and quarantined when the chunk is encoded, unless they end the run.
    rules = job.rules
    if rules.on_error != "fail":
        rules = rules._replace(on_error="skip", max_errors=None)
    intake, hasher = ShardIntake(rules), DocumentHasher(job, count)
    screen = DocumentScreen(job, intake, hasher, Clock())
    with closing(_read_chunk(job, chunk, intake, _thread_buffers(job))) as events:
        for reading, event, _ in events:
            screen.add(reading, event)
    return hasher.smallest.kept


def unpack_chunk(chunk: TextChunk, done: Container[int], key: JobKey, threshold: int | None = None) -> int:
    """Unpack the compressed source of a text chunk into blocks, and return their number.

    A block ends where a shard would end if one task read the whole source, so the shards are the same either way. A
    JSON array is unpacked as JSON Lines.

    Whenever MAX_BLOCKS blocks wait, this task encodes the next one itself, which bounds the space that blocks take.

    done: numbers of finished shards; their blocks are left out.
    """
    job: Job = find_job(key)
    piece = next(job.plan.pieces(chunk))
    source = job.plan.sources[piece.source_index]
    intake = Intake(job.rules._replace(max_errors=None))  # of damage; records are counted by the encoder
    with (
        job.shards.folder(job.temporary) as folder,
        closing(_Blocks(job, chunk, threshold, folder, done)) as blocks,
    ):
        to = (intake, job.separator, _thread_buffers(job))
        try:
            with Reading(piece.source_index, source, piece, *to) as reading:
                require_unchanged(source, reading.file.status())
                try:
                    for data, is_end in _pieces(reading, job.plan.shard_text_bytes):
                        take_step(done_bytes=reading.done_bytes)
                        blocks.write(data)
                        if is_end and len(data):
                            blocks.end()
                except DAMAGE as error:
                    reading.damaged(error)
                    blocks.size = reading.decoded_bytes - blocks.start
                require_unchanged(source, reading.file.status())
        except PermissionError as error:
            intake.bad_file(piece.source_index, source, error)
        blocks.end(is_last=True, damage=intake.unreadable[0][1] if intake.unreadable else "")
        return blocks.number


def _pieces(reading: Reading, block_bytes: int) -> Iterator[tuple[memoryview, bool]]:
    """Yield (bytes of the decompressed source, whether they end a block), in order.

    reading: of a compressed source of text or JSON Lines.
    block_bytes: a block ends at the first event None after so many bytes. The last piece may be empty.

    Damage raises BadInput after the bytes before it. `reading.decoded_bytes` then says where the last whole record
    ends; bytes after that offset belong to an incomplete record and to no block.
    """
    reading.check_content()
    stop = block_bytes
    is_open = False
    for block in line_blocks(reading) if reading.source.kind.format == "jsonl" else text_blocks(reading):
        is_open = not (block.is_last and reading.decoded_bytes >= stop)
        yield block.data, not is_open
        if not is_open:
            stop = reading.decoded_bytes + block_bytes
    if is_open:
        yield memoryview(b""), True


class _Blocks:
    """Writes unpacked text to blocks in order.

    number: of blocks that have ended.
    start, size: of the current block, in the unpacked text.
    """

    def __init__(
        self, job: Job, chunk: TextChunk, threshold: int | None, folder: Path, done: Container[int]
    ) -> None:
        self._job, self._chunk, self._folder, self._done = job, chunk, folder, done
        self._encoder = _Encoder(job, threshold, Buffers())
        self._waiting: deque[ShardId] = deque()  # blocks that are not encoded, as far as known
        self.number = self.start = self.size = 0
        self._line = self._next_line = 0
        self._begin()

    def write(self, data: memoryview) -> None:
        """Append text to the current block."""
        self.size += len(data)
        self._next_line += int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
        with naming(self._path):
            self._file.write(data)

    def end(self, is_last: bool = False, damage: str = "") -> None:
        """End the current block. damage: the error that ended the text."""
        with naming(self._path):
            self._file.close()
        if self._is_kept:
            unpacked = BlockState(self.start, self.size, self._line, is_last, damage)
            self._publish(ShardId(self._chunk.index, self.number), unpacked)
        self.number += 1
        self.start, self.size, self._line = self.start + self.size, 0, self._next_line
        if not is_last:
            self._begin()

    def close(self) -> None:
        """Close the file of a block that has not ended."""
        self._file.close()

    def _begin(self) -> None:
        """Begin a block. The text of a block from an earlier attempt or run is not kept."""
        shard = ShardId(self._chunk.index, self.number)
        self._path = self._folder / file_name(shard, "block")
        self._is_kept = self.number not in self._done and not self._job.shards.is_unpacked(shard)
        self._file = (self._path if self._is_kept else Path(os.devnull)).open("wb")

    def _publish(self, shard: ShardId, unpacked: BlockState) -> None:
        shards, waiting = self._job.shards, self._waiting
        while waiting and shards.size_of(file_name(waiting[0], "block")) is None:
            waiting.popleft()
        if len(waiting) < MAX_BLOCKS:
            shards.keep(self._folder)
            waiting.append(shard)
            shards.put_block_state(shard, unpacked)
            return
        with open_file(str(self._path)) as file:
            record = self._encoder.block(shard, unpacked, file)
        self._path.unlink()
        shards.put_block_state(shard, record)


class _Encoder:
    """Encodes text chunks, or unpacked blocks of them, into shards. clock: time by step."""

    def __init__(self, job: Job, threshold: int | None, buffers: Buffers | None = None) -> None:
        self._job, self._buffers = job, buffers or _thread_buffers(job)
        self._threshold = hash_threshold(job.options.fraction) if threshold is None else threshold
        self._decoded_bytes = 0  # of the chunk so far, see `_read_chunk`
        self.clock = Clock()

    def shards(self, chunk: TextChunk, is_wanted: Callable[[int], bool]) -> Iterator[ShardRecord]:
        """Encode the shards of a text chunk in order. Keep and yield those that `is_wanted` selects."""
        intake = ShardIntake(self._job.rules)
        with closing(_read_chunk(self._job, chunk, intake, self._buffers)) as events:
            for number in count():
                is_kept = is_wanted(number)
                record = self._encode(ShardId(chunk.index, number), intake, events, is_kept)
                if is_kept:
                    yield record
                if record.is_last:
                    return

    def block(self, shard: ShardId, unpacked: BlockState, file: RandomFile) -> ShardRecord:
        """Encode an unpacked block and keep its shard."""
        chunk = self._job.plan.chunk(shard.chunk_index)
        intake = ShardIntake(self._job.rules, unpacked.first_line)
        block = UnpackedBlock(file, unpacked.start, unpacked.size)
        with closing(_read_chunk(self._job, chunk, intake, self._buffers, block)) as events:
            return self._encode(shard, intake, events, unpacked=unpacked)

    def _encode(
        self,
        shard: ShardId,
        intake: ShardIntake,
        events: Iterator[tuple[Reading, Event, int]],
        is_kept: bool = True,
        unpacked: BlockState | None = None,
    ) -> ShardRecord:
        """Encode the next shard, which ends at a document boundary that depends on the text alone."""
        job = self._job
        plan, is_last = job.plan, True
        chunk = plan.chunk(shard.chunk_index)
        with (
            job.shards.folder(job.temporary) as folder,
            closing(
                ShardWriter(folder, shard, job.tokenizer.max_token_id, job.ends.added, job.has_mask)
            ) as writer,
        ):
            intake.begin(writer.quarantine)
            encoder = DocumentEncoder(job, self._threshold, writer, self.clock)
            screen = DocumentScreen(job, intake, encoder, self.clock)
            stop = self._decoded_bytes + plan.shard_text_bytes
            for reading, event, self._decoded_bytes in events:
                writer.begin_source(reading.source_index)
                screen.add(reading, event)
                if event is None and unpacked is None and self._decoded_bytes >= stop:
                    is_last = False
                    break
            if unpacked is not None:
                is_last = unpacked.is_last
                if unpacked.damage:
                    index = next(plan.pieces(chunk)).source_index
                    intake.bad_file(index, plan.sources[index], BadInput(unpacked.damage))
            record = writer.finish(intake.counts(), is_last, chunk.text_bytes if is_last else 0)
            if is_kept:
                job.shards.keep(folder)
        self.clock.lap("write")
        return record


def _read_chunk(
    job: Job,
    chunk: TextChunk,
    intake: Intake,
    buffers: Buffers,
    block: UnpackedBlock | None = None,
) -> Generator[tuple[Reading, Event, int], None, None]:
    """Yield (reading, event, bytes of text so far from compressed and encoded sources).

    Each event is valid until the next.

    intake: counts the records.
    buffers: memory for the text.
    block: read this unpacked block of the chunk's only source instead.
    """
    plan, done_bytes, decoded_bytes = job.plan, 0, 0
    for piece in plan.pieces(chunk):
        source = plan.sources[piece.source_index]
        to = (intake, job.separator, buffers)
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


def _thread_buffers(job: Job) -> Buffers:
    block_bytes = min(READ_BYTES, job.plan.shard_text_bytes)
    buffers: Buffers | None = getattr(_memory, "buffers", None)
    if buffers is None or buffers.block_bytes != block_bytes:
        buffers = _memory.buffers = Buffers(block_bytes)
    return buffers
