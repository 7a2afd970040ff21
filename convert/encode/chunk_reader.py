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


class ChunkReader:
    """Reads a text chunk once. Records are counted in `intake`.

    block: read this unpacked block of the chunk's only source instead.
    decoded_bytes: text so far from compressed and encoded sources.
    """

    def __init__(
        self,
        job: Job,
        chunk: TextChunk,
        intake: Intake,
        buffers: Buffers,
        block: UnpackedBlock | None = None,
    ) -> None:
        self._job, self._chunk, self._intake, self._buffers = job, chunk, intake, buffers
        self._block = block
        self._damage: Exception | None = None
        self.decoded_bytes = 0

    def damaged(self, error: Exception) -> None:
        """Skip the rest of the current source, because reading a long document of it failed."""
        self._damage = error

    def events(self) -> Generator[tuple[Reading, Event], None, None]:
        """Yield all events. Each is valid until the next."""
        plan, done_bytes = self._job.plan, 0
        for piece in plan.pieces(self._chunk):
            source, decoded_before = plan.sources[piece.source_index], self.decoded_bytes
            if source.is_left_out:
                continue
            to = (self._intake, self._job.separator, self._buffers)
            try:
                reading = Reading(piece.source_index, source, piece, *to, block=self._block)
            except PermissionError as error:
                self._intake.bad_file(piece.source_index, source, error)
                continue
            with reading:
                if self._block is None:
                    require_unchanged(source, reading.file.status())
                with closing(reading.documents()) as events:
                    for event in events:
                        take_step(done_bytes=done_bytes + reading.done_bytes)
                        self.decoded_bytes = decoded_before + reading.decoded_bytes
                        yield reading, event
                        if self._damage is not None:
                            reading.damaged(self._damage)
                            self._damage = None
                            break
                if self._block is None:
                    require_unchanged(source, reading.file.status())
            done_bytes += plan.piece_work_bytes(piece)
