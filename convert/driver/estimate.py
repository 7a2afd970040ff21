"""What a conversion will come to, from a sample of its inputs: --dry-run prints it, and space is checked by it.

Samples of the sources are read, encoded and compressed as the work would. What the driver and the
stores have to do besides follows from measurements of both (docs/guides/scale-out.md).
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bpe.tokenizer import Tokenizer
from convert.document_ends import NO_DOCUMENT_ENDS, DocumentEnds, document_ends
from convert.errors import StorageError, printable
from convert.options import ConvertOptions
from convert.planning.plan import Plan
from convert.shards.part_writer import FLUSH_BYTES
from convert.shown.ends import ends_lines
from convert.workdir.folder import DATASET_NAME, noted_scratch
from convert.workdir.workdir import SHARDS_NAME
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.written_metadata import write_chain
from tokenmill.cli.progress import tokens_text
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.samples import Sample, samples_of
from tokenmill.inputs.sizes import bytes_text, counted
from tokenmill.stores import is_url

# Beside the array of an entry: metadata and the manifest, which names every file.
FIXED_BYTES = 4 << 20
START_SECONDS = 0.3
# Of the driver, by zarr format: CPU seconds per GB of text, bytes of memory for each text chunk.
DRIVER_SECONDS = {2: 0.028, 3: 0.015}
DRIVER_CHUNK_BYTES = {2: 11_400, 3: 650}
DRIVER_BASE_BYTES = 60 << 20
# To stores, for each GB of text: of inputs there; of an output there, with its shards, its log and its verification.
INPUT_REQUESTS = 120
OUTPUT_REQUESTS = 1120
# And for each object, however small, and for an output of any size.
OBJECT_REQUESTS = 2
RUN_REQUESTS = 165
# Merging, compressing and verifying beside the encoding, measured on two kinds of text: 60 M tokens/s a worker.
MERGE_TOKENS_PER_SECOND = 60e6
SPACE_MARGIN = 1.1


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
    ends: DocumentEnds = NO_DOCUMENT_ENDS


def estimate(tokenizer: Tokenizer, plan: Plan, layout: ArrayLayout, options: ConvertOptions) -> Estimate:
    """The estimate from a sample of some MiB; a tenth of a second, and what a library costs that a format needs."""
    ends = document_ends(options, tokenizer)
    sampled, whole = np.zeros(4), np.zeros(4)  # bytes of sources, bytes of text, documents, tokens
    seconds = 0.0
    ids: list[np.ndarray[tuple[int, ...], np.dtype[np.uint32]]] = []
    kinds = plan.sources.by_kind()
    largest = 0.0  # tokens of the compressed file with most of them
    by_kind: dict[Kind, list[Sample]] = {}
    faults: dict[int, str] = {}
    for sample in samples_of(plan, options.intake_rules, options.separator_bytes, faults):
        by_kind.setdefault(sample.source.kind, []).append(sample)
    for kind, samples in by_kind.items():
        own = np.zeros(4)
        for sample in samples:
            started = time.perf_counter()
            usual = "encode" if sample.source.kind.format == "text" else "text"
            is_encoded = (options.special_in_text or usual) == "encode"
            ragged = tokenizer.encode_ragged(
                sample.batch.text,
                sample.batch.offsets,
                allowed_special="all" if is_encoded else tokenizer.non_special_added_tokens,
                checked=True,
            )
            seconds += time.perf_counter() - started
            ids.append(ragged.tokens)
            own += (sample.source_bytes, sample.batch.offsets[-1], sample.documents, len(ragged.tokens))
        sampled += own
        whole += own * kinds[kind][1] / max(1, own[0])
        if not kind.is_divisible:
            source = plan.sources[plan.sources.largest_of(kind)]
            largest = max(largest, float(own[3] / max(1, own[0])) * source.size_bytes)
    sampled_bytes, sampled_text, _, sampled_tokens = sampled.tolist()
    _, text_bytes, documents, tokens = whole.tolist()
    tokens += documents * ends.added.per_document
    token_bytes = 4 if options.has_mask or tokenizer.max_token_id >= 1 << 16 else 2
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
        round(sampled_bytes),
        tuple(faults.values()),
        ends,
    )


class Room(NamedTuple):
    """A disk that the run writes to. folder: on it; needed: bytes still to be written there at the worst moment."""

    folder: Path
    needed: float
    free: int
    flag: str  # the option that chooses the disk


def rooms_of(options: ConvertOptions, dataset_bytes: float, working_bytes: float) -> list[Room]:
    """The disks of the dataset and of the temporary shards, or the one disk of both. A store has no limit.

    Files that an earlier run wrote there need no more room. Spooled standard input is no part of either.
    """
    output, scratch = options.output.rstrip("/"), options.scratch
    needs: list[tuple[Path, float, str]] = []
    if is_url(output):
        if scratch is not None and not is_url(scratch):
            needs.append((Path(scratch), working_bytes, "--scratch"))
    else:
        partial = Path(f"{output}.partial")
        shards = noted_scratch(partial)  # an interrupted run resumes where its shards are
        if shards is None or not shards.parent.is_dir():
            shards = partial / SHARDS_NAME if scratch is None else Path(scratch) / SHARDS_NAME
        place = Path(output).resolve().parent if shards.parent == partial else shards.parent
        flag = "--output" if shards.parent == partial else "--scratch"
        needs.append(
            (Path(output).resolve().parent, dataset_bytes - _size_of(partial / DATASET_NAME), "--output")
        )
        needs.append((place, working_bytes - _size_of(shards), flag))
    rooms: dict[int, Room] = {}
    for folder, needed, flag in needs:
        disk = folder.stat().st_dev
        if disk in rooms:
            rooms[disk] = rooms[disk]._replace(needed=rooms[disk].needed + needed)
        else:
            rooms[disk] = Room(folder, needed, shutil.disk_usage(folder).free, flag)
    return list(rooms.values())


def check_space(tokenizer: Tokenizer, plan: Plan, layout: ArrayLayout, options: ConvertOptions) -> None:
    """Raise StorageError (exit 4) if a disk has less room than the estimate says is needed on it.

    Nothing is sampled where there is room for the worst case: a token per byte, not compressed.
    """
    expands = any(kind.is_decoded for kind in plan.sources.kinds)
    worst = 16 * plan.total_bytes * (40 if expands else 1) + FIXED_BYTES
    if all(room.free >= worst for room in rooms_of(options, 0, 0)):
        return
    found = estimate(tokenizer, plan, layout, options)
    for room in rooms_of(options, found.dataset_bytes, found.working_bytes):
        needed = SPACE_MARGIN * room.needed
        if room.free < needed:
            raise StorageError(
                f"{printable(room.folder)}: {bytes_text(room.free)} are free, but about {bytes_text(needed)} are "
                f"needed ({bytes_text(found.dataset_bytes)} for the dataset, {bytes_text(found.working_bytes)} for "
                f"temporary shards). Free some space, or choose another disk with {room.flag}."
            )


def estimate_lines(found: Estimate, plan: Plan, options: ConvertOptions, layout: ArrayLayout) -> list[str]:
    """What --dry-run prints."""
    kinds = sorted((kind.name, *totals) for kind, totals in plan.sources.by_kind().items())
    listed = ", ".join(f"{count:,} {kind} ({bytes_text(size)})" for kind, count, size in kinds)
    room = "".join(
        f"; {bytes_text(disk.free)} free in {printable(disk.folder)}"
        f"{'' if disk.free >= disk.needed * SPACE_MARGIN else ', which is too little'}"
        for disk in rooms_of(options, found.dataset_bytes, found.working_bytes)
    )
    bytes_per_token = found.text_bytes / max(1, found.tokens)
    if options.validation_docs is not None:
        held_out = counted(options.validation_docs, "document")
    elif options.validation:
        held_out = "the files of --validation"
    else:
        held_out = f"about {options.fraction:.3%} of the documents"
    return [
        f"{printable(options.output)}: nothing written (--dry-run); estimated from a sample of "
        f"{bytes_text(found.sampled_bytes)}:",
        f"  inputs     {counted(len(plan.sources), 'file')}: {listed}",
        f"  plan       {counted(plan.chunk_count, 'text chunk')} of up to {bytes_text(plan.chunk_bytes)}, "
        f"{counted(options.worker_count, 'worker')}, Zarr format {layout.zarr_format}, "
        f"compression {options.compression}",
        f"  documents  about {found.documents:,} with {bytes_text(found.text_bytes)} of text; validation {held_out}",
        f"  tokens     about {tokens_text(found.tokens)}, {bytes_per_token:.2f} bytes of text per token",
        *ends_lines(found.ends, options.messages_field is not None),
        f"  disk       about {bytes_text(found.dataset_bytes)} for the dataset and {bytes_text(found.working_bytes)} "
        f"for temporary files{room}",
        f"  time       about {_duration(found.seconds)}",
        *_scaling_lines(found, plan, options, layout),
        *(f"  warning    {fault}" for fault in found.faults),
    ]


def _scaling_lines(
    found: Estimate, plan: Plan, options: ConvertOptions, layout: ArrayLayout
) -> Iterator[str]:
    """What matters beyond one machine: the driver, and the requests to stores."""
    gigabytes, zarr_format = found.text_bytes / 1e9, layout.zarr_format
    sizes = [source.size_bytes for source in plan.sources if source.version]
    requests = INPUT_REQUESTS * sum(sizes) / 1e9 + OBJECT_REQUESTS * len(sizes)
    if is_url(options.output):
        requests += OUTPUT_REQUESTS * gigabytes + RUN_REQUESTS
    if options.executor != "process" or requests:
        memory = DRIVER_BASE_BYTES + DRIVER_CHUNK_BYTES[zarr_format] * plan.chunk_count
        seconds = DRIVER_SECONDS[zarr_format] * gigabytes
        yield f"  driver     about {_duration(seconds)} of CPU time and {bytes_text(memory)} of memory"
    if requests:
        yield f"  requests   about {requests:,.0f} to stores"


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
