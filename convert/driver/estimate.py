"""Estimates the result and the cost of a conversion from a sample of its inputs, for --dry-run and the space check."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from convert.cli.summary import ends_lines
from convert.driver.schedule import unmerged_limit
from convert.encode.job import Setup
from convert.errors import StorageError, printable
from convert.options import ConvertOptions
from tokenmill.cli.progress import tokens_text
from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.samples import samples_of
from tokenmill.inputs.sizes import bytes_text, counted
from tokenmill.stores import is_url

FIXED_BYTES = 4 << 20  # metadata, manifest and tokenizer
TOKEN_BYTES = 4  # in a temporary shard
START_BYTES = 8  # a sequence start, in a temporary shard and in the dataset
SPACE_MARGIN = 1.1
MERGE_TOKENS_PER_SECOND = 60e6  # merging, compressing and verifying, per worker


class Estimate(NamedTuple):
    """working_bytes: temporary shards. cpu_seconds: of one worker. faults: errors in the sample."""

    text_bytes: float
    documents: float
    tokens: float
    dataset_bytes: float
    working_bytes: float
    cpu_seconds: float
    sampled_bytes: float
    faults: tuple[str, ...]


def estimate(setup: Setup) -> Estimate:
    """Return the estimate. The sample of some MiB takes about a tenth of a second."""
    options, plan, tokenizer = setup.options, setup.plan, setup.tokenizer
    faults: dict[int, str] = {}
    sizes = Counter[Kind]()
    for source in plan.sources:
        sizes[source.kind] += source.size_bytes
    seconds, ids = 0.0, [np.zeros(1, np.uint32)]
    # By kind: bytes of files, bytes of text, documents and tokens.
    sums: defaultdict[Kind, np.ndarray] = defaultdict(lambda: np.zeros(4))
    for sample in samples_of(plan, setup.rules, setup.separator, faults):
        kind, text = sample.source.kind, sample.batch
        handling = options.special_in_text or ("encode" if kind.format == "text" else "text")
        special = "all" if handling == "encode" else tokenizer.non_special_added_tokens
        started = time.perf_counter()
        encoded = tokenizer.encode_ragged(text.text, text.offsets, allowed_special=special, checked=True)
        seconds += time.perf_counter() - started
        ids.append(encoded.tokens)
        sums[kind] += (sample.source_bytes, text.offsets[-1], sample.documents, len(encoded.tokens))
    sampled_bytes, sampled_text, _, sampled_tokens = sum(sums.values(), np.zeros(4)).tolist()
    whole = [own * sizes[kind] / max(1, own[0]) for kind, own in sums.items()]
    _, text_bytes, documents, tokens = sum(whole, np.zeros(4)).tolist()
    tokens += documents * setup.ends.added.per_document
    packed = len(setup.layout.codecs.encode(np.concatenate(ids) * np.uint32(2))) / (sampled_tokens + 1)
    # A job array merges nothing until all shares are encoded.
    limit = math.inf if options.share else unmerged_limit(options.worker_count)
    return Estimate(
        text_bytes,
        documents,
        tokens,
        tokens * packed + START_BYTES * documents + FIXED_BYTES,
        min(TOKEN_BYTES * tokens + START_BYTES * documents, limit),
        seconds * text_bytes / max(1, sampled_text) + tokens / MERGE_TOKENS_PER_SECOND,
        sampled_bytes,
        tuple(faults.values()),
    )


def disks_of(
    options: ConvertOptions, dataset_bytes: float, working_bytes: float
) -> list[tuple[str, float, int, str]]:
    """Return (folder, needed bytes, free bytes, flag that selects it) of the disks. A store has no limit."""
    output = options.output if is_url(options.output) else str(Path(options.output).resolve().parent)
    used = [(output, dataset_bytes + working_bytes, "--output")]
    if options.scratch is not None:
        used = [(output, dataset_bytes, "--output"), (options.scratch, working_bytes, "--scratch")]
    return [
        (folder, SPACE_MARGIN * needed, shutil.disk_usage(folder).free, flag)
        for folder, needed, flag in used
        if not is_url(folder)
    ]


def check_space(setup: Setup) -> None:
    """Raise StorageError (exit 4) if a disk has less space than the estimate.

    Nothing is sampled if there is space for one uncompressed token per byte.
    """
    expands = any(kind.is_decoded for kind in setup.plan.sources.kinds)
    worst = 16 * setup.plan.total_bytes * (40 if expands else 1) + FIXED_BYTES
    if all(free >= worst for _, _, free, _ in disks_of(setup.options, 0, 0)):
        return
    found = estimate(setup)
    for folder, needed, free, flag in disks_of(setup.options, found.dataset_bytes, found.working_bytes):
        if free < needed:
            raise StorageError(
                f"{printable(folder)}: {bytes_text(free)} are free, but about {bytes_text(needed)} are needed "
                f"({bytes_text(found.dataset_bytes)} for the dataset, {bytes_text(found.working_bytes)} for "
                f"temporary shards). Free some space, or choose another disk with {flag}."
            )


def estimate_lines(setup: Setup) -> list[str]:
    """Return the lines that --dry-run prints."""
    options, plan, found = setup.options, setup.plan, estimate(setup)
    counts = sorted(Counter(source.kind.name for source in plan.sources).items())
    inputs = f"{', '.join(f'{count:,} {kind}' for kind, count in counts)}; {bytes_text(plan.total_bytes)}"
    chunks = f"{counted(plan.chunk_count, 'text chunk')} of up to {bytes_text(plan.chunk_bytes)}"
    documents = f"{round(found.documents):,} with {bytes_text(found.text_bytes)} of text"
    held_out = f"about {options.fraction:.3%} of the documents"
    if options.validation_docs is not None:
        held_out = counted(options.validation_docs, "document")
    elif options.validation:
        held_out = "the files of --validation"
    per_token = f"{found.text_bytes / max(1, found.tokens):.2f} bytes of text per token"
    disk = f"{bytes_text(found.dataset_bytes)} for the dataset and {bytes_text(found.working_bytes)}"
    disk += " for temporary files"
    for folder, needed, free, _ in disks_of(options, found.dataset_bytes, found.working_bytes):
        disk += f"; {bytes_text(free)} free in {printable(folder)}{', which is too little' * (free < needed)}"
    seconds, workers = (
        found.cpu_seconds,
        f"of CPU time, divided among the workers of {options.engine.executor}",
    )
    if options.engine.executor == "process":
        seconds /= min(options.worker_count, os.cpu_count() or 1)
        workers = f"with {counted(options.worker_count, 'worker')}"
    return [
        f"{printable(options.output)}: nothing written (--dry-run); "
        f"estimated from a sample of {bytes_text(found.sampled_bytes)}:",
        f"  inputs     {counted(len(plan.sources), 'file')}: {inputs}",
        f"  plan       {chunks}, Zarr format {setup.layout.zarr_format}, compression {options.compression}",
        f"  documents  about {documents}; validation {held_out}",
        f"  tokens     about {tokens_text(round(found.tokens))}, {per_token}",
        *ends_lines(setup.ends, setup.tokenizer, options),
        f"  disk       about {disk}",
        f"  time       about {_duration(seconds)} {workers}",
        *(f"  warning    {fault}" for fault in found.faults),
    ]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
