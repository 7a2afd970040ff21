"""The documents of a text chunk, as events of the readers of its sources."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import closing

from convert.encode.job import Job
from convert.planning.plan import TextChunk
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.documents import Buffers, Event, Reading, UnpackedBlock
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.sources import require_unchanged

READ_BYTES = 4 << 20


class _Memory(threading.local):
    """Buffers of a thread, kept from task to task so that their pages are touched once."""

    buffers: Buffers | None = None


_memory = _Memory()


def read_chunk(
    job: Job,
    chunk: TextChunk,
    intake: Intake,
    block: UnpackedBlock | None = None,
    buffers: Buffers | None = None,
) -> Generator[tuple[Reading, Event, int], None, None]:
    """Yield (reading, event, bytes of text so far from compressed and encoded sources).

    Each event is valid until the next.

    intake: counts the records.
    block: read this unpacked block of the chunk's only source instead.
    buffers: memory for the text (default: the one of the thread).
    """
    plan, done_bytes, decoded_bytes = job.plan, 0, 0
    for piece in plan.pieces(chunk):
        source = plan.sources[piece.source_index]
        if source.is_left_out:
            continue
        to = (intake, job.separator, buffers or thread_buffers(job))
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
    """Return the buffers of this thread."""
    block_bytes = min(READ_BYTES, job.plan.shard_text_bytes)
    if _memory.buffers is None or _memory.buffers.block_bytes != block_bytes:
        _memory.buffers = Buffers(block_bytes)
    return _memory.buffers
