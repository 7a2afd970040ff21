"""What a dataset is like: counts, lengths, sizes; one pass over seq_starts and none over the tokens."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flat_tokens.errors import DatasetError
from flat_tokens.format import SPLITS
from flat_tokens.opening import Dataset
from flat_tokens.packs.plan import read_starts
from flat_tokens.reader import FlatTokensArray
from flat_tokens.storage.chunks import largest_file_bytes
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.places import Place, read_whole, walk
from flat_tokens.storage.zarr_metadata import StoredArray
from flat_tokens.storage.zstd_frames import content_checksum
from flat_tokens.views import is_source

STARTS_AT_A_TIME = 2**20
CHECKED_COMPRESSORS = ("bz2", "gzip", "lzma", "zlib")


def describe(dataset: Dataset, with_lengths: bool = True, most_sources: int | None = None) -> dict[str, Any]:
    """Everything that `info` tells, as JSON values: path, zarr_format, version, parts, splits, tokenizer, source_count,
    sources, options, versions; of a dataset to which was appended the sources of all parts, tokenizer, options and
    versions of the first. with_lengths=False leaves out the pass over seq_starts: seq_tokens is None. most_sources: no
    more than so many of the sources are kept and told."""
    manifest = dataset.without_sources
    sources, source_count = _sources(dataset, most_sources)
    return {
        "path": str(dataset.path),
        "zarr_format": dataset.zarr_format,
        "has_manifest": manifest is not None,
        "version": dataset.version,
        "parts": [_describe_part(part) for part in dataset.parts],
        "splits": {name: _describe_split(dataset, dataset[name], with_lengths) for name in SPLITS},
        "tokenizer": dict(manifest.tokenizer) if manifest and manifest.tokenizer else None,
        "source_count": source_count,
        "sources": sources,
        "options": dict(manifest.options) if manifest else {},
        "versions": dict(manifest.versions) if manifest else {},
    }


def describe_sources(dataset: Dataset, patterns: Sequence[str]) -> dict[str, Any]:
    """Some sources, named or by globs, as JSON values: path, sources, and of the splits what their sequences come to.
    ArgumentError where a pattern is no source's."""
    chosen = dataset.of_sources(*patterns)
    sources, source_count = _sources(dataset, None)
    return {
        "path": str(dataset.path),
        "sources": [
            source
            for source in sources
            if any(is_source(str(source["path"]), pattern) for pattern in patterns)
        ],
        "source_count": source_count,
        "splits": {
            name: {
                "token_count": chosen[name].token_count,
                "seq_count": chosen[name].seq_count,
                "trained_tokens": _trained_tokens(chosen[name]),
                "seq_tokens": lengths(chosen[name].seq_starts),
            }
            for name in SPLITS
        },
    }


def _sources(dataset: Dataset, most: int | None) -> tuple[list[Mapping[str, Any]], int]:
    """The first of the sources of all parts, and how many there are."""
    found: list[Mapping[str, Any]] = []
    count = 0
    for part in dataset.parts or (dataset,):
        manifest = part.with_sources(None if most is None else most - len(found))
        if manifest is not None:
            count += len(manifest.sources) + manifest.sources_left_out
            found += manifest.sources if most is None else manifest.sources[: most - len(found)]
    return found, count


def _describe_part(part: Dataset) -> dict[str, Any]:
    counts = {name: part[name].token_count for name in SPLITS}
    return {"path": str(part.path), "zarr_format": part.zarr_format, "tokens": counts}


def _describe_split(dataset: Dataset, array: FlatTokensArray, with_lengths: bool) -> dict[str, Any]:
    """Of the parts of a dataset the first tells how it is stored."""
    parts = dataset.parts or (dataset,)
    disk_bytes = sum(_disk_bytes(part.path, part[array.name]) for part in parts)
    stored = parts[0][array.name].encoded_tokens.stored
    return {
        "token_count": array.token_count,
        "seq_count": array.seq_count,
        "max_token_id": array.max_token_id,
        "trained_tokens": _recorded_trained_tokens(parts, array.name),
        "seq_tokens": lengths(array.seq_starts) if with_lengths else None,
        "disk_bytes": disk_bytes,
        "disk_bytes_per_token": round(disk_bytes / array.token_count, 4) if array.token_count else None,
        "compression": stored.compression if stored else "read by the zarr library",
        "checksum": _checksum(stored) if stored else None,
        "chunk_tokens": stored.chunk_elements if stored else None,
        "shard_tokens": stored.shard_elements if stored and stored.sharded else None,
    }


def _disk_bytes(path: Place, split: FlatTokensArray) -> int:
    """Of the arrays of a part's split, which may lack the loss mask that another has."""
    arrays = (split.encoded_tokens, split.seq_starts, split.loss_mask)
    return sum(size for array in arrays if array is not None for _, _, size in walk(path / array.name))


def _recorded_trained_tokens(parts: Sequence[Dataset], name: str) -> int | None:
    """The trained tokens of a split, None without a loss mask. Manifests have the count; without one, it is counted."""
    if all(part[name].loss_mask is None for part in parts):
        return None
    total = 0
    for part in parts:
        manifest = part.without_sources
        recorded = None if manifest is None else manifest.splits[name].trained_tokens
        counted = _trained_tokens(part[name]) if recorded is None else recorded
        total += part[name].token_count if counted is None else counted
    return total


def _trained_tokens(array: FlatTokensArray) -> int | None:
    """The trained tokens of a split, None without a loss mask. Cost: one pass over the mask."""
    if array.loss_mask is None:
        return None
    return sum(int(np.count_nonzero(bits)) for _, bits in array.loss_mask.blocks(0, array.token_count))


def lengths(seq_starts: Elements) -> dict[str, float] | None:
    """Least, median, mean and greatest length of the sequences in tokens, None if there are none.

    [0, 2, 5, 8] -> {"min": 2, "median": 3, "mean": 2.67, "max": 3}. Exact; memory grows with the number of
    different lengths, not of sequences. DatasetError for starts that do not rise."""
    counts: Counter[int] = Counter()
    for first in range(0, len(seq_starts) - 1, STARTS_AT_A_TIME):
        starts = read_starts(seq_starts, first, min(first + STARTS_AT_A_TIME, len(seq_starts) - 1))
        values, occurrences = np.unique(np.diff(starts), return_counts=True)
        counts.update(dict(zip(values.tolist(), occurrences.tolist(), strict=True)))
    if not counts:
        return None
    seq_count = counts.total()
    ordered = sorted(counts.items())
    running = np.cumsum([occurrences for _, occurrences in ordered])
    middle = [
        ordered[int(np.searchsorted(running, at + 1))][0] for at in ((seq_count - 1) // 2, seq_count // 2)
    ]
    mean = sum(length * occurrences for length, occurrences in ordered) / seq_count
    return {"min": ordered[0][0], "median": sum(middle) / 2, "mean": round(mean, 2), "max": ordered[-1][0]}


def _checksum(stored: StoredArray) -> str | None:
    """What is compared when a zarr chunk is read: "crc32c", the compressor that has a checksum of its own, or None. In
    format 2 the first frame tells for zstd, as its metadata does not."""
    if stored.codecs.crc32c:
        return "crc32c"
    config = json.loads(stored.codecs.compressor or "{}")
    name = config.get("id")
    if name != "zstd":
        return name if name in CHECKED_COMPRESSORS else None
    if config.get("checksum"):
        return "zstd"
    if stored.sharded or not stored.element_count:
        return None
    try:
        payload = read_whole(stored.file_path(0), largest_file_bytes(stored))
    except DatasetError:  # what a lost file means is for `verify` to say
        return None
    return None if content_checksum(payload) is None else "zstd"
