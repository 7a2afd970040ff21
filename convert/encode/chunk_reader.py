"""The documents of a text chunk, as events of the readers of its sources."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

from convert.encode.job import Job
from convert.planning.plan import TextChunk
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.documents import Buffers, Event, Reading, UnpackedBlock
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.sources import require_unchanged


def read_chunk(
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
        if source.is_left_out:
            continue
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
