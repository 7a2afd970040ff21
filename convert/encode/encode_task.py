"""The tasks of encoding: a text chunk becomes one or more temporary shards.

A task counts only once the driver has recorded its result, so it can be lost and repeated at any time.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Container, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from convert.encode.chunk_reader import ChunkReader
from convert.encode.clock import Clock
from convert.encode.document_encoder import DocumentEncoder
from convert.encode.document_screen import DocumentScreen
from convert.encode.held_out import DocumentHasher
from convert.encode.job import Job
from convert.errors import BadInput, DataLost, naming
from convert.planning.plan import Plan, ShardId, TextChunk
from convert.shards.intake import ShardIntake
from convert.shards.shard import QUARANTINE, ShardRecord
from convert.shards.shard_writer import ShardWriter
from convert.shards.unpacked_block import (
    BlockEnd,
    block_name,
    is_unpacked,
    read_end,
    read_record,
    record_name,
)
from tokenmill.engines.job import JobKey, find_job
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.documents import DAMAGE, Buffers, Event, Reading, pass_over
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.sources import require_unchanged
from tokenmill.inputs.unpack import UnpackedBlock, pieces
from tokenmill.stores import RandomFile, StoreNotFound, open_file

MAX_BLOCKS = 16  # unpacked blocks of a file that wait to be encoded
READ_BYTES = 4 << 20


@dataclass(frozen=True)
class ChunkResult:
    """Shards that a task has encoded. seconds: by step."""

    records: tuple[ShardRecord, ...]
    seconds: dict[str, float] = field(default_factory=dict)


class _Memory(threading.local):
    """Buffers of a thread, kept from task to task so that their pages are touched once."""

    buffers: Buffers | None = None


_memory = _Memory()


def encode_chunk(
    chunk: TextChunk, done: Container[int], key: JobKey, threshold: int | None = None
) -> ChunkResult:
    """Encode the shards of a text chunk, except the numbers in `done`.

    threshold: instead of the job's, if it was not known when the job was handed out.

    Memory depends neither on the chunk nor on its documents. InvalidText (exit 3) names a file and a byte, BadInput a
    bad record or a file that changed.
    """
    encoder = _ChunkEncoder(find_job(key), chunk, threshold)
    with closing(encoder.shards(skipped=done)) as records:
        return ChunkResult(tuple(records), encoder.clock.seconds)


def encode_again(records: Sequence[ShardRecord], key: JobKey, threshold: int | None = None) -> None:
    """Encode shards of one text chunk that are missing or damaged, under their former names.

    BadInput if they differ from their records, because the sources changed.
    """
    job: Job = find_job(key)
    chunk = job.plan.chunk(records[0].id.chunk_index)
    by_number = {record.id.number: record for record in records}
    names = {number: record.name for number, record in by_number.items()}
    remaining = len(records)
    with closing(_ChunkEncoder(job, chunk, threshold).shards(names=names)) as encoded:
        for record in encoded:
            remaining -= 1
            if record != by_number[record.id.number]:
                raise changed_chunk(job.plan, chunk)
            if not remaining:
                return
    raise changed_chunk(job.plan, chunk)


def changed_chunk(plan: Plan, chunk: TextChunk) -> BadInput:
    """Return the error for a text chunk that gives other shards than in an earlier run."""
    return BadInput(
        f"{plan.describe(chunk)}: changed since an earlier run read it. Start over with --restart."
    )


def encode_block(shard: ShardId, key: JobKey, threshold: int | None = None) -> ChunkResult:
    """Encode an unpacked block, and replace it by the record of its shard."""
    job: Job = find_job(key)
    chunk = job.plan.chunk(shard.chunk_index)
    record = read_record(job.shards, shard)
    if record is not None:  # of the unpacking task, or of an attempt with a lost result
        return ChunkResult((record,))
    encoder = _ChunkEncoder(job, chunk, threshold)
    try:
        with job.shards.open(block_name(shard)) as file:
            record = encoder.block(shard, file)
    except StoreNotFound:  # another attempt was faster
        record = read_record(job.shards, shard)
        if record is None:
            raise DataLost(
                f"{job.shards.where(block_name(shard))}: missing. Run the same command again."
            ) from None
        return ChunkResult((record,))
    job.shards.store.put(record_name(shard), json.dumps(record.as_json()).encode())
    job.shards.delete([block_name(shard)])
    return ChunkResult((record,), encoder.clock.seconds)


def smallest_hashes(chunk: TextChunk, key: JobKey, count: int) -> NDArray[np.uint64]:
    """Return the `count` smallest hashes of the documents of a text chunk, ascending."""
    job: Job = find_job(key)
    # Bad records are reported and quarantined when the chunk is encoded, unless they end the run.
    rules = job.rules
    if rules.on_error != "fail":
        rules = rules._replace(on_error="skip", max_errors=None)
    intake = ShardIntake(rules)
    intake.begin(Path())
    hasher = DocumentHasher(job, count)
    screen = DocumentScreen(job, intake, hasher, Clock())
    reader = ChunkReader(job, chunk, intake, _buffers(job))
    with closing(reader.events()) as events:
        for reading, event in events:
            with _noting_damage(reader, reading):
                screen.add(reading, event)
    return hasher.smallest.get()


def unpack_chunk(chunk: TextChunk, done: Container[int], key: JobKey, threshold: int | None = None) -> int:
    """Unpack the compressed source of a text chunk into blocks, and return their number.

    Whenever MAX_BLOCKS blocks wait, this task encodes the next one itself, which bounds the space that blocks take.

    done: numbers of finished shards; their blocks are left out.
    """
    job: Job = find_job(key)
    piece = next(job.plan.pieces(chunk))
    source = job.plan.sources[piece.source_index]
    intake = Intake(job.rules._replace(max_errors=None))  # of damage; records are counted by the encoder
    with (
        job.shards.folder(job.temporary) as folder,
        closing(_BlockWriter(job, chunk, threshold, folder, done)) as blocks,
    ):
        try:
            with Reading(piece.source_index, source, piece, intake, job.separator, _buffers(job)) as reading:
                require_unchanged(source, reading.file.status())
                try:
                    for data, is_end in pieces(reading, job.plan.shard_text_bytes):
                        take_step(done_bytes=reading.done_bytes)
                        blocks.write(data)
                        if is_end:
                            blocks.end(is_last=not len(data))
                except DAMAGE as error:
                    reading.damaged(error)
                    blocks.truncate(reading.decoded_bytes)
                require_unchanged(source, reading.file.status())
        except PermissionError as error:
            intake.bad_file(piece.source_index, source, error)
        if not blocks.is_done:
            blocks.end(is_last=True, damage=intake.unreadable[0][1] if intake.unreadable else "")
        return blocks.number


class _BlockWriter:
    """Writes unpacked text to blocks in order. number: of the current block; is_done: the last one has ended."""

    def __init__(
        self, job: Job, chunk: TextChunk, threshold: int | None, folder: Path, done: Container[int]
    ) -> None:
        self._job, self._chunk, self._folder, self._done = job, chunk, folder, done
        self._encoder = _ChunkEncoder(job, chunk, threshold, Buffers())
        self._waiting: deque[ShardId] = deque()  # blocks that are not encoded, as far as known
        self.number, self.is_done = 0, False
        self._start = self._size = self._line = self._next_line = 0
        self._file: BinaryIO | None = None
        self._path = folder / f"{chunk.index}.0-{os.urandom(8).hex()}.block"
        self._begin()

    def write(self, data: memoryview) -> None:
        """Append text to the current block."""
        self._size += len(data)
        self._next_line += bytes(data).count(b"\n")
        if self._file is not None:
            with naming(self._path):
                self._file.write(data)

    def truncate(self, stop: int) -> None:
        """Remove the text after this offset, which is in the current block."""
        self._size = stop - self._start
        if self._file is not None:
            with naming(self._path):
                self._file.seek(self._size)
                self._file.truncate()

    def end(self, is_last: bool, damage: str = "") -> None:
        """End the current block. damage: the error that ended the text."""
        if self._file is not None:
            with naming(self._path):
                self._file.write(BlockEnd(self._start, self._line, is_last, damage).to_bytes())
                self._file.close()
            self._publish(ShardId(self._chunk.index, self.number))
        self.number += 1
        self._start, self._size, self._line = self._start + self._size, 0, self._next_line
        self.is_done = is_last
        if not is_last:
            self._begin()

    def close(self) -> None:
        """Remove the file of a block that has not ended."""
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)

    def _begin(self) -> None:
        """Open a file for the current block, unless an earlier attempt or run has unpacked or encoded it."""
        shard = ShardId(self._chunk.index, self.number)
        self._file = None
        if self.number not in self._done and not is_unpacked(self._job.shards, shard):
            self._file = self._path.open("wb")

    def _publish(self, shard: ShardId) -> None:
        shards, waiting = self._job.shards, self._waiting
        while waiting and shards.size_of(block_name(waiting[0])) is None:
            waiting.popleft()
        if len(waiting) < MAX_BLOCKS:
            shards.keep(self._folder, {self._path.name: block_name(shard)})
            waiting.append(shard)
            return
        with open_file(str(self._path)) as file:
            record = self._encoder.block(shard, file)
        shards.store.put(record_name(shard), json.dumps(record.as_json()).encode())
        self._path.unlink()


class _ChunkEncoder:
    """Encodes a text chunk, or unpacked blocks of it, into shards."""

    def __init__(
        self, job: Job, chunk: TextChunk, threshold: int | None, buffers: Buffers | None = None
    ) -> None:
        self._job, self._chunk = job, chunk
        self._threshold = job.threshold if threshold is None else threshold
        self._buffers = _buffers(job) if buffers is None else buffers
        self._intake = ShardIntake(job.rules)
        self._is_last = False
        self.clock = Clock()

    def shards(
        self, skipped: Container[int] = frozenset(), names: Mapping[int, str] | None = None
    ) -> Generator[ShardRecord, None, None]:
        """Encode shards in order and yield their records.

        skipped: numbers of shards that are not encoded.
        names: encode only shards of these numbers, with these file names.
        """
        reader = ChunkReader(self._job, self._chunk, self._intake, self._buffers)
        number = 0
        with closing(reader.events()) as events:
            while not self._is_last:
                own = self._next_shard(reader, events)
                if number in skipped or (names is not None and number not in names):
                    self._intake.begin(None)
                    for reading, event in own:
                        with _noting_damage(reader, reading):
                            pass_over(event)
                else:
                    name = None if names is None else names[number]
                    yield self._encode(ShardId(self._chunk.index, number), reader, own, name)
                number += 1

    def block(self, shard: ShardId, file: RandomFile) -> ShardRecord:
        """Encode an unpacked block and return the record of its shard."""
        size, end = read_end(file)
        block = UnpackedBlock(file, end.start, size)
        reader = ChunkReader(self._job, self._chunk, self._intake, self._buffers, block)
        self._is_last = end.is_last
        with closing(reader.events()) as events:
            return self._encode(shard, reader, events, None, end)

    def _next_shard(
        self, reader: ChunkReader, events: Iterator[tuple[Reading, Event]]
    ) -> Iterator[tuple[Reading, Event]]:
        """Yield the events of the next shard. It ends at a document boundary that depends on the text alone."""
        stop = reader.decoded_bytes + self._job.plan.shard_text_bytes
        for reading, event in events:
            yield reading, event
            if event is None and reader.decoded_bytes >= stop:
                return
        self._is_last = True

    def _encode(
        self,
        shard: ShardId,
        reader: ChunkReader,
        events: Iterator[tuple[Reading, Event]],
        name: str | None,
        block: BlockEnd | None = None,
    ) -> ShardRecord:
        """Encode the documents of a shard. name: of its files, without suffix (default: a new one)."""
        job, intake = self._job, self._intake
        with (
            job.shards.folder(job.temporary) as folder,
            ShardWriter(folder, shard, job.max_token_id, job.ends, job.has_mask) as writer,
        ):
            intake.begin(folder / (writer.name + QUARANTINE), None if block is None else block.first_line)
            encoder = DocumentEncoder(job, self._threshold, writer, self.clock)
            screen = DocumentScreen(job, intake, encoder, self.clock)
            for reading, event in events:
                writer.begin_source(reading.source_index)
                with _noting_damage(reader, reading):
                    screen.add(reading, event)
            if block is not None and block.damage:
                piece = next(job.plan.pieces(self._chunk))
                intake.bad_file(
                    piece.source_index, job.plan.sources[piece.source_index], BadInput(block.damage)
                )
            record = writer.finish()
            counts = intake.finish(writer.longest, writer.first_ids)
            own_names = [file.name for file in record.files()]
            if counts.quarantine_bytes >= 0:
                own_names.append(writer.name + QUARANTINE)
            final = name or writer.name
            job.shards.keep(folder, {own: own.replace(writer.name, final) for own in own_names})
        self.clock.lap("write")
        text_bytes = self._chunk.text_bytes if self._is_last else 0
        return replace(record, name=final, intake=counts, is_last=self._is_last, text_bytes=text_bytes)


def _buffers(job: Job) -> Buffers:
    """Return the buffers of this thread."""
    block_bytes = min(READ_BYTES, job.plan.shard_text_bytes)
    if _memory.buffers is None or _memory.buffers.block_bytes != block_bytes:
        _memory.buffers = Buffers(block_bytes)
    return _memory.buffers


@contextmanager
def _noting_damage(reader: ChunkReader, reading: Reading) -> Iterator[None]:
    """Let damage of a long document end its source, unless it ends the run."""
    try:
        yield
    except DAMAGE as error:
        if reading.rules.on_error == "fail":
            raise
        reader.damaged(error)
