"""The documents of a text chunk, some MiB at a time, from whatever its sources are; and the digests of their bytes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from convert.encode.clock import Clock
from convert.encode.job import Job
from convert.planning.plan import TextChunk
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.digest import BLOCK_BYTES, DIGEST_BYTES, BlockDigests
from tokenmill.inputs.documents import DAMAGE, Buffers, Event, Reading
from tokenmill.inputs.intake import Intake
from tokenmill.inputs.source_list import Piece, Source
from tokenmill.inputs.sources import require_unchanged


class Found(NamedTuple):
    """An event of a source."""

    source_index: int
    source: Source
    event: Event


class ChunkReader:
    """Reads a text chunk once. Records are counted in `intake`, which says too what becomes of bad ones.

    with_digests: of the sources too; when all documents were given, `digests` has those of the chunk's blocks, end to
    end, and `edges` (source, start, stop, hex digest) of what else was read (tokenmill/inputs/digest.py).
    decoded_bytes: how much text of decoded sources was read. done_bytes: about how much of the chunk's work is done.
    """

    def __init__(
        self,
        job: Job,
        chunk: TextChunk,
        buffers: Buffers,
        intake: Intake,
        clock: Clock,
        *,
        with_digests: bool = True,
    ) -> None:
        self._job, self._chunk, self._buffers = job, chunk, buffers
        self._intake, self._clock, self._with_digests = intake, clock, with_digests
        self.decoded_bytes = self.done_bytes = 0
        self.digests = bytearray()
        self.edges: list[tuple[int, int, int, str]] = []
        self._damage: Exception | None = None

    @contextmanager
    def noting_damage(self) -> Iterator[None]:
        """Around the use of an event: damage within a long document ends its file, if such files are to be left out."""
        try:
            yield
        except DAMAGE as error:
            if self._intake.rules.on_error == "fail":
                raise
            self._damage = error

    def documents(self) -> Generator[Found, None, None]:
        """All of them, in order; with the event None what came so far is counted, and a shard may end.

        BadInput if a source is not as it was when the work was planned.
        """
        plan = self._job.plan
        done = 0
        for piece in plan.pieces(self._chunk):
            source = plan.sources[piece.source_index]
            if source.is_left_out:
                self._pass_digests(piece, source)
                continue
            yield from self._read(piece, source, done)
            done += plan.piece_work_bytes(piece)
            self.done_bytes = done

    def _pass_digests(self, piece: Piece, source: Source) -> None:
        """Zeros instead of the digests of a piece that is not read."""
        if self._with_digests and not source.version:
            first, last = (-(-place // BLOCK_BYTES) for place in (piece.start, piece.stop))
            self.digests += bytes((last - first) * DIGEST_BYTES)

    def _read(self, piece: Piece, source: Source, done_before: int) -> Iterator[Found]:
        clock, job, index = self._clock, self._job, piece.source_index
        own = BlockDigests(piece.start, piece.stop, source.size_bytes)

        def seen(offset: int, data: memoryview) -> None:
            clock.lap("read")
            own.see(offset, data)
            clock.lap("hash")

        def step(_: tuple[int, int] | None, done_bytes: int) -> None:
            self.done_bytes = done_before + done_bytes
            take_step(self.done_bytes)

        with_digests = self._with_digests and not source.version  # which stands for the bytes of an object
        try:
            reading = Reading(
                index,
                source,
                piece,
                self._intake,
                job.separator,
                self._buffers,
                seen=seen if with_digests else None,
                need=own.need,
                step=step,
                decompress_ahead=job.decompress_ahead,
            )
        except PermissionError as error:
            self._intake.bad_file(index, source, error)
            self._pass_digests(piece, source)
            return
        with reading:
            require_unchanged(source, reading.window.status())
            decoded_before = self.decoded_bytes
            with closing(reading.documents()) as events:
                for event in events:
                    self.decoded_bytes = decoded_before + reading.decoded_bytes
                    yield Found(index, source, event)
                    if self._damage is not None:
                        reading.damaged(self._damage)
                        self._damage = None
                        break
            if not with_digests:
                return
            clock.lap("read")
            self.edges.extend((index, *edge) for edge in own.edges(reading.window))
            self.digests += own.finish(reading.window)
            clock.lap("hash")
            require_unchanged(source, reading.window.status())
