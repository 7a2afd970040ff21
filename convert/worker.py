"""What a worker process does: text chunk -> shard, later runs of shards -> files of the dataset.

A process is prepared once with its `Job` (under fork it inherits the loaded tokenizer, nothing is sent), then tasks
carry only a text chunk or a run. Everything is written under a temporary name and renamed, so a task can be lost at
any moment and done again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bpe import _core, utf8
from bpe.tokenizer import Tokenizer
from convert.cut import own_documents
from convert.digest import block_digests
from convert.errors import BadInput, BrokenInvariant, naming, printable
from convert.journal import Journal
from convert.merge import write_run
from convert.plan import Piece, TextChunk
from convert.runs import Run
from convert.shard import PARTS, ShardRecord, token_dtype, write_shard
from convert.sources import Source
from convert.splitting import SplitParts, deal_out, is_validation
from convert.text_window import TextWindow
from flat_tokens.layout import ArrayLayout
from flat_tokens.manifest import FileRecord
from flat_tokens.verify_units import verify_files


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
# One buffer a process, grown to the largest chunk: its pages are touched once, not once a chunk.
_buffer = bytearray()
_tokens = np.empty(0, np.uint32)  # the same for the ids of a text chunk


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

    InvalidText (exit 3) names file and byte, BadInput a file that changed, OSError what the system refused.
    """
    job = _prepared()
    journal = Journal(job.shards)
    finished = journal.finished(chunk.index, needed_parts)
    if finished is not None:
        return ChunkResult(finished, reused=True)

    clock = _Clock()
    splits = (SplitParts(), SplitParts())
    replaced = 0
    digests: list[tuple[int, int, str]] = []
    tokens_used = 0
    for piece in chunk.pieces:
        piece_replaced, tokens_used = _encode_piece(job, piece, splits, digests, clock, tokens_used)
        replaced += piece_replaced

    dtype = token_dtype(job.max_token_id)
    starts, tokens, counts = zip(*(parts.finish(dtype, job.max_token_id) for parts in splits), strict=True)
    clock.lap("split")
    checksums = write_shard(job.shards, chunk.index, starts, tokens)
    record = ShardRecord(
        chunk.index,
        chunk.text_bytes,
        replaced,
        dtype.itemsize,
        checksums,
        counts[0],
        counts[1],
        tuple(digests),
    )
    journal.finish(record)
    clock.lap("write")
    return ChunkResult(record, seconds=clock.seconds)


def _encode_piece(
    job: Job,
    piece: Piece,
    splits: tuple[SplitParts, SplitParts],
    digests: list[tuple[int, int, str]],
    clock: _Clock,
    tokens_used: int,
) -> tuple[int, int]:
    """Encode the documents of one source's part of a chunk into `splits`, behind the `tokens_used` of those before.

    How many bytes were replaced, and the tokens used now.
    """
    source = job.sources[piece.source_index]
    with TextWindow(source.path, source.size_bytes, _buffer) as window:
        if window.actual_size() != source.size_bytes:
            raise BadInput(
                f"{source.path} changed: {source.size_bytes} bytes at first, {window.actual_size()} now; "
                f"convert it again when nothing writes to it"
            )
        span = own_documents(window, job.separator, piece.start, piece.stop)
        clock.lap("read")
        replaced = 0
        if span is not None:
            begin, end = span
            with window.view(begin, end) as view:
                text, replaced = utf8.ensure_valid(view, printable(source.path), job.invalid, begin)
                clock.lap("check")
                out, tokens_used = _token_room(memoryview(text).nbytes, tokens_used)
                ragged = job.tokenizer.encode_documents(text, job.separator, threads=1, checked=True, out=out)
                tokens_used += len(ragged.tokens)
                clock.lap("encode")
                _split(job, source, text, ragged.tokens, ragged.offsets, splits)
                clock.lap("split")
                del text
        digests.extend(
            (piece.source_index, block, digest)
            for block, digest in block_digests(window, piece.start, piece.stop)
        )
        clock.lap("hash")
    return replaced, tokens_used


def _token_room(text_bytes: int, tokens_used: int) -> tuple[np.ndarray[Any, np.dtype[np.uint32]], int]:
    """Where the ids of a text may go, and how many lie before them; what lies there already stays where it is."""
    global _tokens
    room = _core.Encoder.out_tokens(text_bytes)
    if len(_tokens) - tokens_used < room:
        _tokens = np.empty(room + len(_tokens), np.uint32)  # ids in the old memory keep it alive
        tokens_used = 0
    return _tokens[tokens_used:], tokens_used


def _split(
    job: Job,
    source: Source,
    text: Any,
    tokens: np.ndarray[Any, np.dtype[np.uint32]],
    offsets: np.ndarray[Any, np.dtype[np.uint64]],
    splits: tuple[SplitParts, SplitParts],
) -> None:
    if source.split is not None or job.threshold == 0:
        splits[1 if source.split == "validation" else 0].add(tokens, np.diff(offsets))
        return
    hashes = _core.hash_documents(text, job.separator, job.seed)
    # Two scans of the core found the separators, one to encode and one to hash: they must agree.
    if len(hashes) != len(offsets) - 1:
        raise BrokenInvariant(f"{len(offsets) - 1} documents were encoded but {len(hashes)} hashed")
    deal_out(tokens, offsets, is_validation(hashes, job.threshold), splits)


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
