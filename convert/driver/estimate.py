"""What a conversion will come to, from a sample of its inputs: --dry-run prints it, and space is checked by it.

A few stretches of the sources, evenly spaced over the corpus and at least one of each kind, are read, encoded and
compressed as the work would. Numbers are about right where the sources are alike; what compressed files hold is judged
by their beginnings.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bpe.end_tokens import end_tokens
from bpe.tokenizer import Tokenizer
from convert.errors import ConvertError, StorageError, one_line, printable
from convert.options import ConvertOptions
from convert.planning.plan import Plan
from convert.shards.part_writer import FLUSH_BYTES
from convert.shown.progress import tokens_text
from corpus import utf8
from corpus._core import json_texts
from corpus.batch import Batch
from corpus.blocks import FileRange
from corpus.decompress import DecompressedFile
from corpus.documents import Buffers, Documents, Reading
from corpus.intake import Intake
from corpus.kinds import Kind
from corpus.rules import IntakeRules
from corpus.sizes import bytes_text, counted
from corpus.source_list import Piece, Source
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.zarr_metadata import write_chain
from stores import is_url

SAMPLES = 16
SAMPLE_BYTES = 256 << 10
# Beside the array of an entry: metadata and the manifest, which names every file.
FIXED_BYTES = 4 << 20
START_SECONDS = 0.3
# Merging, compressing and verifying beside the encoding, measured on two kinds of text: 60 M tokens/s a worker.
MERGE_TOKENS_PER_SECOND = 60e6
SPACE_MARGIN = 1.1


class Sample(NamedTuple):
    """A part of one source: the bytes of the file it took, the texts in it, how many documents begin there, and what is
    wrong with it."""

    source: Source
    source_bytes: int
    batch: Batch
    documents: float
    fault: str = ""


class Estimate(NamedTuple):
    """Of a whole conversion. seconds: of all stages, on as many cores as there are workers."""

    text_bytes: int
    documents: int
    tokens: int
    dataset_bytes: int
    working_bytes: int  # of unmerged shards, beside the dataset
    seconds: float
    sampled_bytes: int
    faults: tuple[str, ...] = ()  # what is wrong with the sample

    @property
    def needed_bytes(self) -> int:
        """The space on the disk at the worst moment."""
        return self.dataset_bytes + self.working_bytes


def estimate(tokenizer: Tokenizer, plan: Plan, layout: ArrayLayout, options: ConvertOptions) -> Estimate:
    """The estimate from a sample of some MiB; a tenth of a second, and what a library costs that a format needs."""
    ends = end_tokens(tokenizer, options.prepend_token, options.append_token)
    text_bytes = documents = tokens = 0.0
    total_sampled = sampled_text = sampled_tokens = 0.0
    seconds = 0.0
    ids: list[np.ndarray[tuple[int, ...], np.dtype[np.uint32]]] = []
    kinds = plan.sources.by_kind()
    largest = 0.0  # tokens of the compressed file with most of them
    by_kind: dict[Kind, list[Sample]] = {}
    faults: dict[int, str] = {}
    for sample in _samples(plan, options.intake_rules, options.separator_bytes, faults):
        by_kind.setdefault(sample.source.kind, []).append(sample)
    for kind, samples in by_kind.items():
        kind_bytes = kinds[kind][1]
        counts = [0.0] * 4
        for sample in samples:
            started = time.perf_counter()
            usual = "encode" if sample.source.kind.format == "text" else "text"
            ragged = tokenizer.encode_ragged(
                sample.batch.text,
                sample.batch.offsets,
                allowed_special="all" if (options.special_in_text or usual) == "encode" else (),
                checked=True,
            )
            seconds += time.perf_counter() - started
            ids.append(ragged.tokens)
            part = (sample.source_bytes, int(sample.batch.offsets[-1]), sample.documents, len(ragged.tokens))
            counts = [count + more for count, more in zip(counts, part, strict=True)]
        scale = kind_bytes / max(1, counts[0])
        text_bytes += counts[1] * scale
        documents += counts[2] * scale
        tokens += counts[3] * scale
        if not kind.is_divisible:
            source = plan.sources[plan.sources.largest_of(kind)]
            largest = max(largest, counts[3] / max(1, counts[0]) * source.size_bytes)
        total_sampled += counts[0]
        sampled_text += counts[1]
        sampled_tokens += counts[3]
    tokens += documents * ends.per_document
    token_bytes = 2 if tokenizer.max_token_id < 1 << 16 else 4
    bytes_a_document = 8 if options.source_places == "no" else 16  # start, place
    packed = len(write_chain(layout).encode(np.concatenate(ids) * np.uint32(2))) if sampled_tokens else 0
    dataset = tokens * packed / max(1, sampled_tokens) + bytes_a_document * documents + FIXED_BYTES
    # While one worker reads such a file, what the others encode waits for it.
    waiting = min(tokens - largest, largest * (options.worker_count - 1))
    shard_tokens = min(
        tokens / max(1, plan.chunk_count), plan.shard_text_bytes * tokens / max(1.0, text_bytes)
    )
    shard_tokens = max(shard_tokens, tokens / max(1.0, documents))  # no document is in two
    working = min(tokens, shard_tokens * 3 * (options.worker_count + 2) + waiting) * token_bytes
    working += bytes_a_document * documents
    # What is small of each shard stays until the end.
    working += min(options.fraction * tokens * token_bytes, plan.chunk_count * FLUSH_BYTES)
    work_seconds = seconds * text_bytes / max(1, sampled_text) + tokens / MERGE_TOKENS_PER_SECOND
    return Estimate(
        round(text_bytes),
        round(documents),
        round(tokens),
        round(dataset),
        round(working),
        START_SECONDS + work_seconds / min(options.worker_count, os.cpu_count() or 1),
        round(total_sampled),
        tuple(faults.values()),
    )


def check_space(tokenizer: Tokenizer, plan: Plan, layout: ArrayLayout, options: ConvertOptions) -> None:
    """Raise StorageError (exit 4) if the disk of the output has less room than the estimate says is needed.

    Nothing is sampled where there is room for the worst case: a token a byte, and nothing gained by compression. Of a
    store nobody knows how much room there is.
    """
    if is_url(options.output):
        return
    folder = Path(options.output).resolve().parent
    free = shutil.disk_usage(folder).free
    expands = any(kind.is_decoded for kind in plan.sources.kinds)
    worst = 16 * plan.total_bytes * (40 if expands else 1) + FIXED_BYTES
    if free >= worst:
        return
    found = estimate(tokenizer, plan, layout, options)
    partial = Path(f"{options.output.rstrip('/')}.partial")
    needed = SPACE_MARGIN * found.needed_bytes - _size_of(partial)
    if free < needed:
        raise StorageError(
            f"{folder} has {bytes_text(free)} free, but about {bytes_text(needed)} are needed "
            f"({bytes_text(found.dataset_bytes)} of dataset, {bytes_text(found.working_bytes)} on the way); "
            f"free some space or choose another place for --output"
        )


def estimate_lines(found: Estimate, plan: Plan, options: ConvertOptions, layout: ArrayLayout) -> list[str]:
    """What --dry-run prints."""
    kinds = sorted((kind.name, *totals) for kind, totals in plan.sources.by_kind().items())
    listed = ", ".join(f"{count:,} {kind} ({bytes_text(size)})" for kind, count, size in kinds)
    room = ""
    if not is_url(options.output):
        folder = Path(options.output).resolve().parent
        free = shutil.disk_usage(folder).free
        short = "" if free >= found.needed_bytes * SPACE_MARGIN else ", which is too little"
        room = f"; {bytes_text(free)} free in {printable(folder)}{short}"
    bytes_per_token = found.text_bytes / max(1, found.tokens)
    if options.validation_docs is not None:
        held_out = counted(options.validation_docs, "document")
    elif options.validation:
        held_out = "the files of --validation"
    else:
        held_out = f"about {options.fraction:.3%} of the documents"
    return [
        f"{printable(options.output)}: nothing written (--dry-run); by a sample of {bytes_text(found.sampled_bytes)}:",
        f"  inputs     {counted(len(plan.sources), 'file')}: {listed}",
        f"  plan       {counted(plan.chunk_count, 'text chunk')} of up to {bytes_text(plan.chunk_bytes)}, "
        f"{counted(options.worker_count, 'worker')}, zarr format {layout.zarr_format}, "
        f"compression {options.compression}",
        f"  documents  about {found.documents:,} with {bytes_text(found.text_bytes)} of text; validation {held_out}",
        f"  tokens     about {tokens_text(found.tokens)}, {bytes_per_token:.2f} bytes of text each",
        f"  disk       about {bytes_text(found.dataset_bytes)} for the dataset and {bytes_text(found.working_bytes)} "
        f"on the way{room}",
        f"  time       about {_duration(found.seconds)}",
        *(f"  warning    {fault}" for fault in found.faults),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _size_of(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(place) / name).stat().st_size
    return total


def _samples(plan: Plan, rules: IntakeRules, separator: bytes, faults: dict[int, str]) -> Iterator[Sample]:
    """Samples of the sources at the places where they are to lie; bad records are passed over.

    faults: gets, by number, what is wrong with the sources that are sampled; the first of each.
    Nothing is taken twice: in a corpus of a few MB a sample begins where the one before ended.
    """
    taken: dict[int, int] = {}  # by source: how far
    for index, start in _places(plan):
        source = plan.sources[index]
        is_packed = source.kind.is_decoded  # from the beginning, and once
        start = max(taken.get(index, 0), 0 if is_packed else start - SAMPLE_BYTES // 2)
        if start >= source.size_bytes:
            continue
        taken[index] = source.size_bytes if is_packed else start + SAMPLE_BYTES
        try:
            sample = _sample(source, start, rules, separator)
        except ConvertError as error:
            faults.setdefault(index, one_line(error))
            continue
        if sample.fault:
            faults.setdefault(index, f"{printable(source.shown)}: {sample.fault}")
        if sample.source_bytes:
            yield sample


def _places(plan: Plan) -> Iterator[tuple[int, int]]:
    """(source, byte of it): evenly spaced over the line of all sources, and, of each kind that this passes over, in the
    middle of its largest source: a few compressed files may hold more text than what lies beside them."""
    missed = plan.sources.kinds
    for k in range(SAMPLES):
        place = plan.total_bytes * (2 * k + 1) // (2 * SAMPLES)
        if place >= plan.total_bytes:
            return
        index = plan.source_at(place)
        missed.discard(plan.sources[index].kind)
        yield index, place - plan.source_starts[index]
    for kind in sorted(missed):
        index = plan.sources.largest_of(kind)
        yield index, plan.sources[index].size_bytes // 2


def _sample(source: Source, start: int, rules: IntakeRules, separator: bytes) -> Sample:
    if source.kind.format == "parquet":
        return _parquet_sample(source, rules)
    if source.kind.format not in ("text", "jsonl"):
        return _table_sample(source, rules)
    if source.kind.is_divisible:
        stop = min(start + SAMPLE_BYTES, source.size_bytes)
        data = bytearray(stop - start)
        with source.open() as file:
            used = _fill(FileRange(file, source.shown, start, stop), data)
        if source.kind.format == "jsonl":
            first = 0 if start == 0 else data.find(b"\n") + 1
            last = len(data) if stop == source.size_bytes else data.rfind(b"\n") + 1
            if (first == 0 and start > 0) or first >= last:  # within a long line: nearly all of it is text
                return Sample(
                    source, used, Batch.of([bytes(data).decode(errors="ignore").encode()]), start == 0
                )
            data, used = data[first:last], last - first
    else:
        data = bytearray(4 * SAMPLE_BYTES)
        with DecompressedFile(
            source.open(), source.shown, source.kind.compression, rules.max_window_bytes
        ) as stream:
            filled = _fill(stream, data)
            used = stream.used_bytes
        data = data[:filled]
        if source.kind.format == "jsonl" and filled == 4 * SAMPLE_BYTES and (last := data.rfind(b"\n")) >= 0:
            del data[last + 1 :]  # a line cut by us is no bad one
    fault = (utf8.other_kind(data) or "") if start == 0 else ""
    text = bytes(data).decode(errors="ignore").encode()
    if source.kind.format == "jsonl":
        out = np.empty(len(text) + 16, dtype=np.uint8)
        path = [name.encode() for name in rules.text_path]
        offsets, _, bad, lines, blank, _ = json_texts(text, path, out)
        if bad and not fault:
            from corpus.read_jsonl import reason_of  # a run that has room needs no sample

            reasons = ", ".join(sorted({reason_of(name) for *_, name in bad}))
            fault = f"{len(bad):,} of {counted(lines - blank, 'record')} of the sample are bad: {reasons}"
        batch = Batch(out[: int(offsets[-1])].data, offsets)
        return Sample(source, used, batch, len(batch), fault)
    texts = text.split(separator)
    # Those that begin in it: not the one it begins within. A document of many stretches is begun once, not in each.
    begun = len(texts) - (start > 0) - (not texts[-1])
    return Sample(source, used, Batch.of(texts), begun, fault)


def _fill(stream: FileRange | DecompressedFile, data: bytearray) -> int:
    filled = 0
    with memoryview(data) as view:
        while filled < len(view) and (got := stream.readinto(view[filled:])):
            filled += got
    return filled


def _table_sample(source: Source, rules: IntakeRules) -> Sample:
    """The first rows."""
    intake = Intake(rules._replace(on_error="skip", max_errors=None))
    texts: list[bytes] = []
    text_bytes = used = 0

    def step(_: tuple[int, int] | None, done_bytes: int) -> None:
        nonlocal used
        used = done_bytes

    piece = Piece(0, 0, source.size_bytes)
    with Reading(0, source, piece, intake, b"", Buffers(), step=step) as reading:
        for event in reading.documents():
            if isinstance(event, Documents):
                view = memoryview(event.batch.text)
                texts += [bytes(view[start:stop]) for start, stop in pairwise(event.batch.offsets.tolist())]
                text_bytes += len(view)
            if text_bytes >= 4 * SAMPLE_BYTES:
                break
        else:
            used = source.size_bytes
    fault = ""
    if bad := sum(intake.skipped.values()):
        reasons = ", ".join(sorted(intake.skipped))
        fault = f"{bad:,} of {counted(intake.records, 'record')} of the sample are bad: {reasons}"
    return Sample(source, used, Batch.of(texts), len(texts), fault)


def _parquet_sample(source: Source, rules: IntakeRules) -> Sample:
    from corpus.read_parquet import text_sample

    rows, row_count, texts = text_sample(source, rules, 4 * SAMPLE_BYTES)
    mended = [text.decode(errors="replace").encode() for text in texts]
    return Sample(source, round(source.size_bytes * rows / max(1, row_count)), Batch.of(mended), rows)
