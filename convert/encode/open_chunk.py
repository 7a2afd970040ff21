"""A text chunk that is being encoded, shard after shard.

A compressed file, or a row group of Parquet, is read from its beginning, and may hold many times what its size says. So
its documents go to several shards, whole ones to each: what is encoded is kept when the work is stopped in its middle,
and merged while the rest is read. Between two of its shards a chunk stays open in its worker. Where shards end follows
from the text alone: any worker can begin anew, and pass over those there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from convert.encode.clock import Clock
from convert.encode.document_encoder import DocumentEncoder
from convert.encode.job import Job
from convert.encode.read_chunk import ChunkReader, Found
from convert.planning.plan import ShardId, TextChunk
from convert.shards.intake import ShardIntake, quarantine_name
from convert.shards.shard import NOT_TRAINED, ShardRecord, token_dtype
from convert.shards.shard_writer import ShardWriter
from tokenmill.inputs.documents import Buffers, pass_over


class OpenChunk:
    """The shards of `chunk`, each to be encoded or passed over; number: of the next one; is_done: there is none. clock:
    books the steps; to be started when the work goes on.

    threshold: of hashes, in place of the job's if given. buffers: not to be used by others until it is closed.
    """

    def __init__(self, job: Job, chunk: TextChunk, threshold: int | None, buffers: Buffers) -> None:
        self.chunk, self.number, self.is_done = chunk, 0, False
        self.job = job
        self._threshold = job.threshold if threshold is None else threshold
        self.clock = Clock()
        self._intake = ShardIntake(job.rules)
        self._reader = ChunkReader(job, chunk, buffers, self._intake, self.clock)
        self._documents = self._reader.documents()

    @property
    def done_bytes(self) -> int:
        """About how much of the chunk's work is done (`Plan.work_bytes`)."""
        return self._reader.done_bytes

    def encode(self, spares: list[str]) -> ShardRecord:
        """The next shard; spares: files to write over (convert/shards/shard_files.py), those that it uses are taken
        out."""
        job, clock, intake = self.job, self.clock, self._intake
        shard_id = ShardId(self.chunk.index, self.number)
        dtype = token_dtype(int(NOT_TRAINED) if job.has_mask else job.max_token_id)
        with (
            job.shards.attempt(job.temporary) as folder,
            ShardWriter(
                folder, shard_id, dtype, job.max_token_id, job.ends, spares, job.has_places, job.has_mask
            ) as shard,
        ):
            intake.begin(shard_id, folder)
            encoder = DocumentEncoder(job, self._threshold, shard, intake, clock)
            for found in self._next_shard():
                shard.begin_source(found.source_index)
                with self._reader.noting_damage():
                    encoder.take(found)
            record = shard.finish()
            counts = intake.finish(shard.longest, shard.first_ids)
            kept = {name for name, _ in record.places if name}
            if counts.quarantine_bytes >= 0:
                kept.add(quarantine_name(shard_id))
            job.shards.keep(folder, sorted(kept))
        record = replace(record, replaced=intake.replaced, intake=counts)
        if self.is_done:
            record = replace(
                record,
                is_last=True,
                text_bytes=self.chunk.text_bytes,
                digests=bytes(self._reader.digests),
                edges=tuple(self._reader.edges),
            )
        clock.lap("write")
        return record

    def pass_over(self) -> None:
        """The next shard is there already: read on to its end."""
        self._intake.begin(None)
        for found in self._next_shard():
            with self._reader.noting_damage():
                pass_over(found.event)

    def close(self) -> None:
        """Let go of its files, and of the thread that decompresses."""
        self._documents.close()

    def _next_shard(self) -> Iterator[Found]:
        """The documents of the next shard."""
        self.number += 1
        stop = self._reader.decoded_bytes + self.job.plan.shard_text_bytes
        for found in self._documents:
            if found.event is not None:
                yield found
            elif self._reader.decoded_bytes >= stop:
                return
        self.is_done = True
