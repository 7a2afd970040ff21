"""Estimates the result and the cost of a conversion from a sample of its inputs, for --dry-run and the space check."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from convert.cli.summary import ends_lines
from convert.encode.job import Setup
from convert.errors import StorageError, printable
from convert.options import ConvertOptions
from tokenmill.cli.progress import tokens_text
from tokenmill.inputs.kinds import Kind
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


def estimate(setup: Setup) -> Estimate:
    """Return the estimate. The sample of some MiB takes about a tenth of a second."""
    options, plan, tokenizer = setup.options, setup.plan, setup.tokenizer
    faults: dict[int, str] = {}
    samples: defaultdict[Kind, list[Sample]] = defaultdict(list)
    for sample in samples_of(plan, setup.rules, options.separator.encode(), faults):
        samples[sample.source.kind].append(sample)
    kind_bytes: Counter[Kind] = Counter()
    largest_file = 0  # of those that one task reads
    for source in plan.sources:
        kind_bytes[source.kind] += source.size_bytes
        largest_file = max(largest_file, 0 if source.kind.is_divisible else source.size_bytes)
    seconds, ids = 0.0, [np.zeros(0, np.uint32)]
    sampled, whole = np.zeros(4), np.zeros(4)  # bytes of files, bytes of text, documents, tokens
    for kind, of_kind in samples.items():
        handling = options.special_in_text or ("encode" if kind.format == "text" else "text")
        special = "all" if handling == "encode" else tokenizer.non_special_added_tokens
        totals = np.zeros(4)
        for sample in of_kind:
            text, started = sample.batch, time.perf_counter()
            encoded = tokenizer.encode_ragged(text.text, text.offsets, allowed_special=special, checked=True)
            seconds += time.perf_counter() - started
            ids.append(encoded.tokens)
            totals += (sample.source_bytes, text.offsets[-1], sample.documents, len(encoded.tokens))
        sampled += totals
        whole += totals * kind_bytes[kind] / max(1, totals[0])
    sampled_bytes, sampled_text, _, sampled_tokens = sampled.tolist()
    _, text_bytes, documents, tokens = whole.tolist()
    tokens += documents * setup.ends.added.per_document
    packed = len(setup.layout.codecs.encode(np.concatenate(ids) * np.uint32(2))) if sampled_tokens else 0
    if options.share is None:
        # While one worker reads the largest file, the shards of the others wait for it. No document is in two shards.
        waiting = tokens * largest_file / max(1, plan.total_bytes) * (options.worker_count - 1)
        shard_tokens = max(tokens / max(1, plan.chunk_count), tokens / max(1.0, documents))
        working = min(tokens, shard_tokens * 3 * (options.worker_count + 2) + waiting)
    else:  # nothing is merged until all shares are encoded
        working = tokens
    return Estimate(
        round(text_bytes),
        round(documents),
        round(tokens),
        round(tokens * packed / max(1, sampled_tokens) + START_BYTES * documents + FIXED_BYTES),
        round(working * TOKEN_BYTES + START_BYTES * documents),
        seconds * text_bytes / max(1, sampled_text) + tokens / MERGE_TOKENS_PER_SECOND,
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
    output = options.output if is_url(options.output) else str(Path(options.output).resolve().parent)
    scratch, flag = (output, "--output") if options.scratch is None else (options.scratch, "--scratch")
    disks: dict[int, Disk] = {}
    for folder, needed, selects in (output, dataset_bytes, "--output"), (scratch, working_bytes, flag):
        if not is_url(folder):
            device = Path(folder).stat().st_dev
            same = disks.get(device, Disk(Path(folder), 0, shutil.disk_usage(folder).free, selects))
            disks[device] = same._replace(needed=same.needed + needed)
    return list(disks.values())


def check_space(setup: Setup) -> None:
    """Raise StorageError (exit 4) if a disk has less space than the estimate.

    Nothing is sampled if there is space for one uncompressed token per byte.
    """
    options, plan = setup.options, setup.plan
    expands = any(kind.is_decoded for kind in plan.sources.kinds)
    worst = 16 * plan.total_bytes * (40 if expands else 1) + FIXED_BYTES
    if all(disk.free >= worst for disk in disks_of(options, 0, 0)):
        return
    found = estimate(setup)
    for disk in disks_of(options, found.dataset_bytes, found.working_bytes):
        needed = SPACE_MARGIN * disk.needed
        if disk.free < needed:
            raise StorageError(
                f"{printable(disk.folder)}: {bytes_text(disk.free)} are free, but about {bytes_text(needed)} are "
                f"needed ({bytes_text(found.dataset_bytes)} for the dataset, {bytes_text(found.working_bytes)} for "
                f"temporary shards). Free some space, or choose another disk with {disk.flag}."
            )


def estimate_lines(setup: Setup) -> list[str]:
    """Return the lines that --dry-run prints."""
    options, plan, found = setup.options, setup.plan, estimate(setup)
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
    if options.engine.executor == "process":
        time_text = _duration(found.cpu_seconds / min(options.worker_count, os.cpu_count() or 1))
        time_text += f" with {counted(options.worker_count, 'worker')}"
    else:
        workers = f"divided among the workers of {options.engine.executor}"
        time_text = f"{_duration(found.cpu_seconds)} of CPU time, {workers}"
    counts, sizes = Counter[str](), Counter[str]()
    for source in plan.sources:
        counts[source.kind.name] += 1
        sizes[source.kind.name] += source.size_bytes
    inputs = (f"{counts[kind]:,} {kind} ({bytes_text(sizes[kind])})" for kind in sorted(counts))
    chunks = f"{counted(plan.chunk_count, 'text chunk')} of up to {bytes_text(plan.chunk_bytes)}"
    documents = f"{found.documents:,} with {bytes_text(found.text_bytes)} of text"
    per_token = f"{found.text_bytes / max(1, found.tokens):.2f} bytes of text per token"
    disk = f"{bytes_text(found.dataset_bytes)} for the dataset and {bytes_text(found.working_bytes)}"
    sample = f"estimated from a sample of {bytes_text(found.sampled_bytes)}"
    return [
        f"{printable(options.output)}: nothing written (--dry-run); {sample}:",
        f"  inputs     {counted(len(plan.sources), 'file')}: {', '.join(inputs)}",
        f"  plan       {chunks}, Zarr format {setup.layout.zarr_format}, compression {options.compression}",
        f"  documents  about {documents}; validation {held_out}",
        f"  tokens     about {tokens_text(found.tokens)}, {per_token}",
        *ends_lines(setup.ends, options.messages_field is not None),
        f"  disk       about {disk} for temporary files{space}",
        f"  time       about {time_text}",
        *(f"  warning    {fault}" for fault in found.faults),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
