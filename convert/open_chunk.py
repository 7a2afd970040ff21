"""A text chunk that is being encoded, shard after shard.

A compressed file, or a row group of Parquet, is read from its beginning, and may hold many times what its size says. So
its documents go to several shards, whole ones to each: what is encoded is kept when the work is stopped in its middle,
and merged while the rest is read. Between two of its shards a chunk stays open in its worker. Where shards end follows
from the text alone: any worker can begin anew, and pass over those there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from numpy import uint64
from numpy.typing import NDArray

from convert.clock import Clock
from convert.document_encoder import DocumentEncoder
from convert.intake import ShardIntake
from convert.job import Job
from convert.plan import ShardId, TextChunk
from convert.read_chunk import ChunkReader, DocumentTaker, Rooms
from convert.shards.shard import ShardRecord, token_dtype
from convert.shards.shard_writer import ShardWriter
from corpus.batch import Batch
from corpus.long_line import LongLine
from corpus.source_list import Source

if TYPE_CHECKING:
    from typing_extensions import Buffer


class OpenChunk:
    """The shards of `chunk`, each to be encoded or passed over; number: of the next one; is_done: there is none. clock:
    books the steps; to be started when the work goes on.

    threshold: of hashes, in place of the job's if given. rooms: not to be used by others until it is closed.
    """

    def __init__(self, job: Job, chunk: TextChunk, threshold: int | None, rooms: Rooms) -> None:
        self.chunk, self.number, self.is_done = chunk, 0, False
        self.job = job
        self._threshold = job.threshold if threshold is None else threshold
        self.clock = Clock()
        self._intake = ShardIntake(job.rules, job.shards)
        self._reader = ChunkReader(job, chunk, rooms, self._intake, self.clock)
        self._documents = self._reader.documents()

    @property
    def done_bytes(self) -> int:
        """About how much of the chunk's work is done (`Plan.work_bytes`)."""
        return self._reader.done_bytes

    def encode(self, spare: str | None = None) -> ShardRecord:
        """The next shard; spare: a file to write over (convert/shards/shard_files.py)."""
        job, clock, intake = self.job, self.clock, self._intake
        shard_id = ShardId(self.chunk.index, self.number)
        intake.begin(shard_id)
        dtype = token_dtype(job.max_token_id)
        with ShardWriter(job.shards, shard_id, dtype, job.max_token_id, job.ends, spare) as shard:
            self._give_to(
                DocumentEncoder(job.tokenizer, job.separator, job.seed, self._threshold, shard, intake, clock)
            )
            part_digests, places, (train, validation) = shard.finish()
            counts = intake.finish(shard.longest, shard.first_ids)
        is_last = self.is_done
        record = ShardRecord(
            shard_id,
            is_last,
            self.chunk.text_bytes if is_last else 0,
            intake.replaced,
            dtype.itemsize,
            part_digests,
            train,
            validation,
            bytes(self._reader.digests) if is_last else b"",
            tuple(self._reader.edges) if is_last else (),
            counts,
            places,
        )
        clock.lap("write")
        return record

    def pass_over(self) -> None:
        """The next shard is there already: read on to its end."""
        self._intake.begin(None)
        self._give_to(_Nobody())

    def close(self) -> None:
        """Let go of its files, and of the thread that decompresses."""
        self._documents.close()
        self._intake.close()

    def _give_to(self, taker: DocumentTaker) -> None:
        """The documents of the next shard."""
        self.number += 1
        stop = self._reader.packed_bytes + self.job.plan.shard_text_bytes
        for give in self._documents:
            if give is not None:
                give(taker)
            elif self._reader.packed_bytes >= stop:
                return
        self.is_done = True


class _Nobody:
    """Takes documents, and does nothing with them."""

    def stretch(self, source_index: int, source: Source, text: memoryview, start: int) -> None:
        """See DocumentTaker."""

    def batch(self, source_index: int, source: Source, batch: Batch, places: NDArray[uint64]) -> None:
        """See DocumentTaker."""

    def pieces(
        self, source_index: int, source: Source, pieces: Iterator[tuple[Buffer, bool]], start: int
    ) -> None:
        """See DocumentTaker."""
        for _ in pieces:
            pass

    def long_line(self, source_index: int, source: Source, line: LongLine) -> None:
        """See DocumentTaker."""
        for _ in line.texts():
            pass
