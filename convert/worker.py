"""What a worker process does: text chunk -> shard, later runs of shards -> files of the dataset.

A process is prepared once with its `Job` (under fork it inherits the loaded tokenizer, nothing is sent), then tasks
carry only a text chunk or a run. Everything is written under a temporary name and renamed, so a task can be lost at
any moment and done again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpe import _core, utf8
from bpe.tokenizer import Tokenizer
from convert.digest import BlockDigests
from convert.errors import BadInput, BrokenInvariant, naming, printable
from convert.journal import Journal
from convert.long_document import ValidPieces, encode_pieces
from convert.merge import write_run
from convert.plan import Piece, TextChunk
from convert.runs import Run
from convert.shard import PARTS, ShardRecord, token_dtype
from convert.shard_writer import ShardWriter
from convert.sources import Source
from convert.splitting import deal_out, is_validation
from convert.stretches import STRETCH_BYTES, Stretch, own_stretches
from convert.text_window import TextWindow
from flat_tokens.layout import ArrayLayout
from flat_tokens.manifest import FileRecord
from flat_tokens.verify_units import verify_files

if TYPE_CHECKING:
    from typing_extensions import Buffer


@dataclass(frozen=True)
class Job:
    """All that is the same for every task of a conversion."""

    tokenizer: Tokenizer
    max_token_id: int
    sources: tuple[Source, ...]
    separator: bytes
    seed: int
    threshold: int  # a document whose hash is below it is validation, 0 to 2^64
    invalid: utf8.Invalid
    shards: Path
    dataset: Path
    layout: ArrayLayout


@dataclass(frozen=True)
class ChunkResult:
    """What comes back from a text chunk: its record, whether it was there from an earlier run, seconds by step."""

    record: ShardRecord
    reused: bool = False
    seconds: dict[str, float] = field(default_factory=dict)


class _Clock:
    """Adds up where the time goes: `lap("encode")` books the time since the last lap."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now


_job: Job | None = None
# One buffer a process for the text of a stretch and one for its ids: their pages are touched once.
_buffer = bytearray()
_tokens = np.empty(0, np.uint32)


def prepare(job: Job) -> None:
    """Make this process ready for the tasks of `job`."""
    global _job
    _job = job
    job.tokenizer.encode_documents(b"")  # builds the encoder where it was not inherited


def _prepared() -> Job:
    if _job is None:
        raise BrokenInvariant("a task came to a worker that was not prepared")
    return _job


def encode_chunk(chunk: TextChunk, needed_parts: tuple[str, ...] = PARTS) -> ChunkResult:
    """Encode the documents of a text chunk into its shard, or take over the one of an earlier run if it is intact.

    needed_parts: those of PARTS that have to be there for that.

    A stretch at a time, so memory depends neither on the chunk nor on its documents.
    InvalidText (exit 3) names file and byte, BadInput a file that changed, OSError what the system refused.
    """
    job = _prepared()
    journal = Journal(job.shards)
    finished = journal.finished(chunk.index, needed_parts)
    if finished is not None:
        return ChunkResult(finished, reused=True)

    clock = _Clock()
    replaced = 0
    digests: list[tuple[int, int, str]] = []
    dtype = token_dtype(job.max_token_id)
    with ShardWriter(job.shards, chunk.index, dtype, job.max_token_id) as shard:
        for piece in chunk.pieces:
            replaced += _encode_piece(job, piece, shard, digests, clock)
        checksums, (train, validation) = shard.finish()
    record = ShardRecord(
        chunk.index,
        chunk.text_bytes,
        replaced,
        dtype.itemsize,
        checksums,
        train,
        validation,
        tuple(digests),
    )
    journal.finish(record)
    clock.lap("write")
    return ChunkResult(record, seconds=clock.seconds)


def _encode_piece(
    job: Job, piece: Piece, shard: ShardWriter, digests: list[tuple[int, int, str]], clock: _Clock
) -> int:
    """Encode the documents of one source's part of a chunk into the shard; how many U+FFFD were put in."""
    source = job.sources[piece.source_index]
    own_digests = BlockDigests(piece.start, piece.stop, source.size_bytes)
    replaced = 0

    def seen(offset: int, data: memoryview) -> None:
        clock.lap("read")
        own_digests.see(offset, data)
        clock.lap("hash")

    with TextWindow(source.path, source.size_bytes, _buffer, seen) as window:
        _require_unchanged(source, window)
        stretches = own_stretches(window, job.separator, piece.start, piece.stop, STRETCH_BYTES)
        for stretch in stretches:
            if stretch.is_piece:
                replaced += _encode_long(job, source, window, chain([stretch], stretches), shard, clock)
                continue
            clock.lap("read")
            with window.view(stretch.start, stretch.stop) as view:
                text, mended = utf8.ensure_valid(view, printable(source.path), job.invalid, stretch.start)
                clock.lap("check")
                _encode_whole(job, source, text, shard, clock)
                replaced += mended
                del text
        clock.lap("read")
        digests.extend((piece.source_index, block, digest) for block, digest in own_digests.finish(window))
        clock.lap("hash")
        _require_unchanged(source, window)
    return replaced


def _require_unchanged(source: Source, window: TextWindow) -> None:
    """BadInput if the open file is not as it was when the work was planned."""
    status = window.status()
    if status.st_size != source.size_bytes:
        raise BadInput(
            f"{source.path} changed: {source.size_bytes} bytes at first, {status.st_size} now; "
            f"convert it again when nothing writes to it"
        )
    if status.st_mtime_ns != source.mtime_ns:
        raise BadInput(f"{source.path} was written to while it was read; convert it again")


def _encode_whole(job: Job, source: Source, text: Any, shard: ShardWriter, clock: _Clock) -> None:
    """Encode whole documents with separators between them."""
    global _tokens
    room = _core.Encoder.out_tokens(memoryview(text).nbytes)
    if len(_tokens) < room:
        _tokens = np.empty(room, np.uint32)
    ragged = job.tokenizer.encode_documents(text, job.separator, threads=1, checked=True, out=_tokens)
    clock.lap("encode")
    if source.split is not None or job.threshold == 0:
        shard.add(_split_of(source), ragged.tokens, np.diff(ragged.offsets))
    else:
        hashes = _core.hash_documents(text, job.separator, job.seed)
        # Two scans of the core found the separators, one to encode and one to hash: they must agree.
        if len(hashes) != len(ragged.offsets) - 1:
            raise BrokenInvariant(
                f"{len(ragged.offsets) - 1} documents were encoded but {len(hashes)} hashed"
            )
        deal_out(ragged.tokens, ragged.offsets, is_validation(hashes, job.threshold), shard)
    clock.lap("split")


def _encode_long(
    job: Job,
    source: Source,
    window: TextWindow,
    stretches: Iterator[Stretch],
    shard: ShardWriter,
    clock: _Clock,
) -> int:
    """Encode a document that comes in pieces, up to its last one; how many U+FFFD were put in."""
    first = next(stretches)
    valid = ValidPieces(printable(source.path), job.invalid, first.start)
    content = _core.Xxh64(job.seed)

    def pieces() -> Iterator[Buffer]:
        for stretch in chain([first], stretches):
            clock.lap("read")
            with window.view(stretch.start, stretch.stop) as view:
                text = valid.take(view, stretch.final)
                clock.lap("check")
                content.update(text)
                clock.lap("split")
                yield text
                del text
            if stretch.final:
                return

    guess = _split_of(source)
    for tokens in encode_pieces(job.tokenizer, pieces(), try_bytes=STRETCH_BYTES):
        clock.lap("encode")
        shard.extend(tokens, guess)
        clock.lap("split")
    if source.split is not None or job.threshold == 0:
        shard.end_document(guess)
    else:
        hashes = np.array([content.digest()], dtype=np.uint64)
        shard.end_document(int(is_validation(hashes, job.threshold)[0]))
    return valid.replaced


def _split_of(source: Source) -> int:
    return 1 if source.split == "validation" else 0


def merge_run(run: Run) -> list[FileRecord]:
    """Write one run of the dataset's arrays and its record; the records of its files."""
    job = _prepared()
    with naming(job.dataset / run.split):
        files = write_run(job.dataset, job.shards, job.layout, run)
    Journal(job.shards).finish_run(run, files)
    return files


def are_intact(files: list[FileRecord]) -> bool:
    """Whether files of the dataset are there with every byte they were written with."""
    return not verify_files(_prepared().dataset, tuple(files)).problems
