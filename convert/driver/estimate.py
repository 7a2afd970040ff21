"""Estimates the result and the cost of a conversion from a sample of its inputs, for --dry-run and the space check."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bpe.tokenizer import Tokenizer
from convert.cli.summary import ends_lines
from convert.document_ends import DocumentEnds
from convert.errors import StorageError, printable
from convert.options import ConvertOptions
from convert.planning.plan import Plan
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.written_metadata import write_chain
from tokenmill.cli.progress import tokens_text
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.rules import IntakeRules
from tokenmill.inputs.samples import Sample, samples_of
from tokenmill.inputs.sizes import bytes_text, counted
from tokenmill.stores import is_url

FIXED_BYTES = 4 << 20  # metadata, manifest and tokenizer
TOKEN_BYTES = 4  # in a temporary shard
START_BYTES = 8  # a sequence start, in a temporary shard and in the dataset
SPACE_MARGIN = 1.1
# Merging, compressing and verifying, per worker. The result is an estimate; no decision depends on it.
MERGE_TOKENS_PER_SECOND = 60e6


class Estimate(NamedTuple):
    """working_bytes: temporary shards. cpu_seconds: of one worker. faults: errors in the sample."""

    text_bytes: int
    documents: int
    tokens: int
    dataset_bytes: int
    working_bytes: int
    cpu_seconds: float
    sampled_bytes: int
    faults: tuple[str, ...]


def estimate(
    tokenizer: Tokenizer,
    plan: Plan,
    layout: ArrayLayout,
    options: ConvertOptions,
    ends: DocumentEnds,
    rules: IntakeRules,
) -> Estimate:
    """Return the estimate. The sample of some MiB takes about a tenth of a second."""
    faults: dict[int, str] = {}
    samples: defaultdict[Kind, list[Sample]] = defaultdict(list)
    for sample in samples_of(plan, rules, options.separator.encode(), faults):
        samples[sample.source.kind].append(sample)
    kind_bytes: Counter[Kind] = Counter()
    largest_file = 0  # of those that one task reads
    for source in plan.sources:
        kind_bytes[source.kind] += source.size_bytes
        if not source.kind.is_divisible:
            largest_file = max(largest_file, source.size_bytes)
    sampled, whole, seconds = (
        np.zeros(4),
        np.zeros(4),
        0.0,
    )  # bytes of files, bytes of text, documents, tokens
    ids = [np.zeros(0, np.uint32)]
    for kind, of_kind in samples.items():
        totals = np.zeros(4)
        for sample in of_kind:
            started = time.perf_counter()
            is_special = (
                options.special_in_text or ("encode" if kind.format == "text" else "text")
            ) == "encode"
            ragged = tokenizer.encode_ragged(
                sample.batch.text,
                sample.batch.offsets,
                allowed_special="all" if is_special else tokenizer.non_special_added_tokens,
                checked=True,
            )
            seconds += time.perf_counter() - started
            ids.append(ragged.tokens)
            totals += (sample.source_bytes, sample.batch.offsets[-1], sample.documents, len(ragged.tokens))
        sampled += totals
        whole += totals * kind_bytes[kind] / max(1, totals[0])
    sampled_bytes, sampled_text, _, sampled_tokens = sampled.tolist()
    _, text_bytes, documents, tokens = whole.tolist()
    tokens += documents * ends.added.per_document
    packed = len(write_chain(layout).encode(np.concatenate(ids) * np.uint32(2))) if sampled_tokens else 0
    # While one worker reads the largest such file, the shards of the others wait for it. No document is in two shards.
    waiting = tokens * largest_file / max(1, plan.total_bytes) * (options.worker_count - 1)
    shard_tokens = max(tokens / max(1, plan.chunk_count), tokens / max(1.0, documents))
    is_whole = options.task_count is not None  # then nothing is merged until all shares are encoded
    working = tokens if is_whole else min(tokens, shard_tokens * 3 * (options.worker_count + 2) + waiting)
    cpu_seconds = seconds * text_bytes / max(1, sampled_text) + tokens / MERGE_TOKENS_PER_SECOND
    return Estimate(
        round(text_bytes),
        round(documents),
        round(tokens),
        round(tokens * packed / max(1, sampled_tokens) + START_BYTES * documents + FIXED_BYTES),
        round(working * TOKEN_BYTES + START_BYTES * documents),
        cpu_seconds,
        round(sampled_bytes),
        tuple(faults.values()),
    )


class Disk(NamedTuple):
    """A disk that the run writes to.

    folder: a folder on it. needed: bytes to be written. flag: the option that selects the disk.
    """

    folder: Path
    needed: float
    free: int
    flag: str


def disks_of(options: ConvertOptions, dataset_bytes: float, working_bytes: float) -> list[Disk]:
    """Return the disks of the dataset and of the temporary shards, or the one disk of both. A store has no limit."""
    needs: list[tuple[str, float, str]] = []
    if not is_url(options.output):
        needs.append((str(Path(options.output).resolve().parent), dataset_bytes, "--output"))
    if options.scratch is not None and not is_url(options.scratch):
        needs.append((options.scratch, working_bytes, "--scratch"))
    elif needs:
        needs.append((needs[0][0], working_bytes, "--output"))
    disks: dict[int, Disk] = {}
    for folder, needed, flag in needs:
        device = Path(folder).stat().st_dev
        same = disks.get(device, Disk(Path(folder), 0, shutil.disk_usage(folder).free, flag))
        disks[device] = same._replace(needed=same.needed + needed)
    return list(disks.values())


def check_space(
    tokenizer: Tokenizer,
    plan: Plan,
    layout: ArrayLayout,
    options: ConvertOptions,
    ends: DocumentEnds,
    rules: IntakeRules,
) -> None:
    """Raise StorageError (exit 4) if a disk has less space than the estimate.

    Nothing is sampled if there is space for one uncompressed token per byte.
    """
    expands = any(source.kind.is_decoded for source in plan.sources)
    worst = 16 * plan.total_bytes * (40 if expands else 1) + FIXED_BYTES
    if all(disk.free >= worst for disk in disks_of(options, 0, 0)):
        return
    found = estimate(tokenizer, plan, layout, options, ends, rules)
    for disk in disks_of(options, found.dataset_bytes, found.working_bytes):
        needed = SPACE_MARGIN * disk.needed
        if disk.free < needed:
            raise StorageError(
                f"{printable(disk.folder)}: {bytes_text(disk.free)} are free, but about {bytes_text(needed)} are "
                f"needed ({bytes_text(found.dataset_bytes)} for the dataset, {bytes_text(found.working_bytes)} for "
                f"temporary shards). Free some space, or choose another disk with {disk.flag}."
            )


def estimate_lines(
    found: Estimate, plan: Plan, options: ConvertOptions, layout: ArrayLayout, ends: DocumentEnds
) -> list[str]:
    """Return the lines that --dry-run prints."""
    space = "".join(
        f"; {bytes_text(disk.free)} free in {printable(disk.folder)}"
        f"{'' if disk.free >= disk.needed * SPACE_MARGIN else ', which is too little'}"
        for disk in disks_of(options, found.dataset_bytes, found.working_bytes)
    )
    if options.validation_docs is not None:
        held_out = counted(options.validation_docs, "document")
    elif options.validation:
        held_out = "the files of --validation"
    else:
        held_out = f"about {options.fraction:.3%} of the documents"
    if options.engine_name == "process":
        workers = counted(options.worker_count, "worker")
        cores = min(options.worker_count, os.cpu_count() or 1)
        duration = f"about {_duration(found.cpu_seconds / cores)}"
    else:
        workers = f"the workers of {options.engine_name}"
        duration = f"about {_duration(found.cpu_seconds)} of CPU time, divided among the workers"
    return [
        f"{printable(options.output)}: nothing written (--dry-run); estimated from a sample of "
        f"{bytes_text(found.sampled_bytes)}:",
        f"  inputs     {counted(len(plan.sources), 'file')}: {_inputs(plan)}",
        f"  plan       {counted(plan.chunk_count, 'text chunk')} of up to {bytes_text(plan.chunk_bytes)}, {workers}, "
        f"Zarr format {layout.zarr_format}, compression {options.compression}",
        f"  documents  about {found.documents:,} with {bytes_text(found.text_bytes)} of text; validation {held_out}",
        f"  tokens     about {tokens_text(found.tokens)}, {found.text_bytes / max(1, found.tokens):.2f} bytes of text "
        "per token",
        *ends_lines(ends, options.messages_field is not None),
        f"  disk       about {bytes_text(found.dataset_bytes)} for the dataset and {bytes_text(found.working_bytes)} "
        f"for temporary files{space}",
        f"  time       {duration}",
        *(f"  warning    {fault}" for fault in found.faults),
    ]


def _inputs(plan: Plan) -> str:
    """Return the files by kind: "2 jsonl (22.5 kB), 1 parquet (1.0 MB)"."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for source in plan.sources:
        counts[source.kind.name] += 1
        sizes[source.kind.name] += source.size_bytes
    return ", ".join(f"{counts[kind]:,} {kind} ({bytes_text(sizes[kind])})" for kind in sorted(counts))


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
