"""What a worker process does: text chunk -> shard, later runs of shards -> files of the dataset.

A process is prepared once with its `Job` (under fork it inherits the loaded tokenizer, nothing is sent), then tasks
carry only a text chunk or a run. What a task writes counts for nothing until the parent has noted its result in the
journal, so a task can be lost at any moment and done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpe.tokenizer import Tokenizer
from convert.clock import Clock
from convert.document_encoder import DocumentEncoder
from convert.errors import BadInput, BrokenInvariant, naming
from convert.held_out import DocumentHasher
from convert.inputs.blocks import Block, own_lines, record_blocks
from convert.inputs.digest import BlockDigests, first_changed
from convert.inputs.kinds import PLAIN_TEXT
from convert.inputs.long_line import LongLine
from convert.inputs.read_ahead import decompressed
from convert.inputs.read_jsonl import JsonLines
from convert.inputs.read_parquet import parquet_batches
from convert.inputs.source_list import Source
from convert.inputs.stretches import STRETCH_BYTES, Stretch, own_stretches
from convert.inputs.text_window import TextWindow
from convert.intake import Intake
from convert.plan import Piece, Plan, TextChunk
from convert.processes.worker_process import take_step
from convert.rules import IntakeRules
from convert.shards.merge import write_run
from convert.shards.runs import Run
from convert.shards.shard import PARTS, ShardRecord, is_intact, token_dtype
from convert.shards.shard_writer import ShardWriter
from convert.shards.slots import Slots
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.verify_units import verify_files

if TYPE_CHECKING:
    from typing_extensions import Buffer

Need = Callable[[int, int], None]  # (start, stop) of a source
SourceParts = tuple[int, Sequence[tuple[int, int, str]]]  # source, (start, stop, hex digest) of parts of it


class Job(NamedTuple):
    """All that is the same for every task of a conversion."""

    tokenizer: Tokenizer
    max_token_id: int
    plan: Plan
    separator: bytes
    seed: int
    threshold: int  # a document whose hash is below it is validation, 0 to 2^64
    rules: IntakeRules
    shards: Path
    dataset: Path
    layout: ArrayLayout
    decompress_ahead: bool = False  # by a thread beside: there are workers enough that have nothing to do


@dataclass(frozen=True)
class ChunkResult:
    """What comes back from a text chunk: its record, whether it was there from an earlier run, seconds by step."""

    record: ShardRecord
    reused: bool = False
    seconds: dict[str, float] = field(default_factory=dict)


_job: Job | None = None
# Kept from piece to piece, so that their pages are touched once: the text of a stretch or block, the lines' texts.
_buffer = bytearray()
_json_lines = JsonLines()


def prepare(job: Job) -> None:
    """Make this process ready for the tasks of `job`."""
    global _job
    _job = job
    job.tokenizer.encode_documents(b"")  # builds the encoder where it was not inherited


def _prepared() -> Job:
    if _job is None:
        raise BrokenInvariant("a task came to a worker that was not prepared")
    return _job


def encode_chunk(
    chunk: TextChunk,
    slots: Slots,
    threshold: int | None = None,
    earlier: ShardRecord | None = None,
    needed_parts: tuple[str, ...] = PARTS,
) -> ChunkResult:
    """Encode the documents of a text chunk into its shard, or take over the one of an earlier run if it is intact.

    slots: the files to write to. threshold: in place of the job's, if it came later. earlier: the record of an earlier
    run's shard; needed_parts: those of PARTS that have to be there for it to be taken over.

    A stretch at a time, so memory depends neither on the chunk nor on its documents.
    InvalidText (exit 3) names file and byte, BadInput a bad record or a file that changed, OSError what the system
    refused.
    """
    job = _prepared()
    if earlier is not None and is_intact(job.shards, earlier, needed_parts):
        return ChunkResult(earlier, reused=True)

    clock = Clock()
    digests = bytearray()
    edges: list[tuple[int, int, int, str]] = []
    dtype = token_dtype(job.max_token_id)
    intake = Intake(job.rules, job.shards, chunk.index)
    with (
        closing(intake),
        ShardWriter(job.shards, slots, dtype, job.max_token_id) as shard,
    ):
        threshold = job.threshold if threshold is None else threshold
        encoder = DocumentEncoder(job.tokenizer, job.separator, job.seed, threshold, shard, intake, clock)
        for piece in job.plan.pieces(chunk):
            blocks, own_edges = _encode_piece(job, piece, encoder, intake, clock)
            digests += blocks
            edges.extend((piece.source_index, *edge) for edge in own_edges)
        checksums, places, (train, validation) = shard.finish()
        counts = intake.finish(shard.longest, shard.first_ids)
    record = ShardRecord(
        chunk.index,
        chunk.text_bytes,
        intake.replaced,
        dtype.itemsize,
        checksums,
        train,
        validation,
        bytes(digests),
        tuple(edges),
        counts,
        places,
    )
    clock.lap("write")
    return ChunkResult(record, seconds=clock.seconds)


def smallest_hashes(chunk: TextChunk, count: int) -> NDArray[np.uint64]:
    """The `count` smallest hashes of the chunk's documents, ascending; fewer if there are not so many."""
    job = _prepared()
    # What is to be done with bad records is done when the chunk is encoded; only those that end the work do it here.
    rules = (
        job.rules if job.rules.on_error == "fail" else job.rules._replace(on_error="skip", max_errors=None)
    )
    intake = Intake(rules, job.shards, chunk.index)
    special_tokens = [token.encode() for token in job.tokenizer.special_tokens]
    hasher = DocumentHasher(special_tokens, job.separator, job.seed, count, intake)
    for piece in job.plan.pieces(chunk):
        source = job.plan.sources[piece.source_index]
        with TextWindow(source.path, source.size_bytes, _buffer) as window:
            _require_unchanged(source, window)
            _read_piece(job, piece, source, window, hasher, intake, lambda start, stop: None)
    return hasher.smallest.get()


def _encode_piece(
    job: Job,
    piece: Piece,
    encoder: DocumentEncoder,
    intake: Intake,
    clock: Clock,
) -> tuple[bytes, list[tuple[int, int, str]]]:
    """Encode the documents of one source's part of a chunk; the digests of its blocks, and its edges
    (convert/inputs/digest.py)."""
    source = job.plan.sources[piece.source_index]
    own_digests = BlockDigests(piece.start, piece.stop, source.size_bytes)

    def seen(offset: int, data: memoryview) -> None:
        clock.lap("read")
        own_digests.see(offset, data)
        clock.lap("hash")

    with TextWindow(source.path, source.size_bytes, _buffer, seen) as window:
        _require_unchanged(source, window)
        _read_piece(job, piece, source, window, encoder, intake, own_digests.need)
        clock.lap("read")
        edges = own_digests.edges(window)
        blocks = own_digests.finish(window)
        clock.lap("hash")
        _require_unchanged(source, window)
    return blocks, edges


def _read_piece(
    job: Job,
    piece: Piece,
    source: Source,
    window: TextWindow,
    encoder: DocumentEncoder,
    intake: Intake,
    need: Need,
) -> None:
    """need: is told which bytes of the file the documents depend on, once they are read."""
    if source.kind == PLAIN_TEXT:
        _encode_plain_text(job, piece, source, window, encoder, need)
    else:
        _encode_records(job, piece, source, encoder, intake, need)


def _encode_plain_text(
    job: Job, piece: Piece, source: Source, window: TextWindow, encoder: DocumentEncoder, need: Need
) -> None:
    stop = piece.stop

    def seen(stretch: Stretch) -> None:
        nonlocal stop
        take_step((piece.source_index, stretch.start, stretch.stop), stretch.start - piece.start)
        stop = max(stop, stretch.stop + len(job.separator))

    stretches = own_stretches(window, job.separator, piece.start, piece.stop, STRETCH_BYTES)
    for stretch in stretches:
        seen(stretch)
        if stretch.is_piece:
            pieces = _window_pieces(window, chain([stretch], stretches), seen)
            encoder.pieces(piece.source_index, source, pieces, stretch.start)
        else:
            with window.view(stretch.start, stretch.stop) as view:
                encoder.stretch(piece.source_index, source, view, stretch.start)
    need(piece.start, stop)


def _window_pieces(
    window: TextWindow, stretches: Iterator[Stretch], seen: Callable[[Stretch], None]
) -> Iterator[tuple[Buffer, bool]]:
    for stretch in stretches:
        seen(stretch)
        with window.view(stretch.start, stretch.stop) as view:
            yield view, stretch.final
        if stretch.final:
            return


def _encode_records(
    job: Job, piece: Piece, source: Source, encoder: DocumentEncoder, intake: Intake, need: Need
) -> None:
    """Encode a piece of anything but plain text. What is compressed belongs to the piece that the file begins in."""
    index, rules = piece.source_index, intake.rules
    if source.kind.is_plain and source.kind.format == "jsonl":
        need(piece.start - 1, own_lines(source.path, source.size_bytes, piece.start, piece.stop)[1])
    elif not source.kind.is_plain and piece.start == 0:
        need(0, source.size_bytes)
    if source.kind.format == "jsonl":
        for found in _json_lines.batches(index, source, piece, intake, job.decompress_ahead):
            take_step()
            if isinstance(found, LongLine):
                encoder.long_line(index, source, found)
            else:
                encoder.batch(index, source, *found)
    elif source.kind.format == "parquet":
        for batch, places in parquet_batches(index, source, piece, intake, need):
            take_step()
            encoder.batch(index, source, batch, places)
    elif piece.start == 0:
        with decompressed(source, rules.max_window_bytes, job.decompress_ahead) as stream:
            blocks = record_blocks(stream, job.separator, _buffer)
            for block in blocks:
                take_step((index, block.start, block.start + len(block.text)), stream.used_bytes)
                if block.is_piece:
                    encoder.pieces(index, source, _block_pieces(block, blocks), block.start)
                else:
                    encoder.stretch(index, source, block.text, block.start)


def _block_pieces(block: Block, blocks: Iterator[Block]) -> Iterator[tuple[Buffer, bool]]:
    yield block.text, block.final
    while not block.final:
        take_step()
        block = next(blocks)
        yield block.text, block.final


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


def changed_part(sources: Sequence[SourceParts]) -> tuple[int, tuple[int, int]] | None:
    """The first source, and the first of its parts (start, stop, digest), that is not what it was when its shard was
    made."""
    for source_index, parts in sources:
        changed = first_changed(_prepared().plan.sources[source_index].path, parts)
        if changed is not None:
            return source_index, changed
    return None


def merge_run(run: Run) -> list[FileRecord]:
    """Write one run of the dataset's arrays; the records of its files."""
    job = _prepared()
    with naming(job.dataset / run.split):
        return write_run(job.dataset, job.shards, job.layout, run)


def are_intact(files: list[FileRecord]) -> bool:
    """Whether files of the dataset are there with every byte they were written with."""
    return not verify_files(_prepared().dataset, tuple(files)).problems
