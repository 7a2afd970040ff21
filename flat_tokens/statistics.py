"""Statistics of a dataset: counts, lengths and sizes. At most one pass over seq_starts, and none over the tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flat_tokens.errors import DatasetError, printable
from flat_tokens.format import SPLITS, Int64
from flat_tokens.opening import Dataset
from flat_tokens.packs.plan import blocks_of
from flat_tokens.reader import FlatTokensArray
from flat_tokens.storage.elements import Elements
from flat_tokens.storage.places import open_file, walk
from flat_tokens.storage.zarr_metadata import ArrayMetadata
from flat_tokens.storage.zstd_frames import frame_header
from flat_tokens.views import is_source

STARTS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Counts:
    """Values in order, and how often each occurs."""

    values: Int64
    counts: Int64

    @property
    def total(self) -> int:
        """The number of values."""
        return int(self.counts.sum())

    @property
    def sum(self) -> int:
        """The sum of all values."""
        return int((self.values * self.counts).sum())

    def percentile(self, percent: int) -> int:
        """Return the smallest value that `percent` of the values do not exceed."""
        at = int(np.searchsorted(np.cumsum(self.counts), self.total * percent / 100))
        return int(self.values[min(at, len(self.values) - 1)])


def counts_of(parts: Iterable[npt.NDArray[Any]]) -> Counts:
    """Count the integers of some arrays."""
    values = counts = np.empty(0, np.int64)
    for part in parts:
        own, times = np.unique(part, return_counts=True)
        values, at = np.unique(np.concatenate([values, own.astype(np.int64)]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([counts, times]), len(values)).astype(np.int64)
    return Counts(values, counts)


def describe(dataset: Dataset, with_lengths: bool = True, most_sources: int | None = None) -> dict[str, Any]:
    """Return what `info` shows as JSON values: path, zarr_format, splits, tokenizer, sources, options, versions.

    with_lengths: read seq_starts; otherwise seq_tokens is None.
    most_sources: the number of sources to list (default: all).
    """
    manifest = dataset.manifest
    splits = {
        name: _counts(dataset, dataset[name], with_lengths) | _storage(dataset, dataset[name])
        for name in SPLITS
    }
    return {
        "path": str(dataset.path),
        "zarr_format": dataset.zarr_format,
        "has_manifest": manifest is not None,
        "splits": splits,
        "tokenizer": dict(manifest.tokenizer) if manifest and manifest.tokenizer else None,
        "source_count": _source_count(dataset),
        "sources": dataset.sources(most_sources),
        "options": dict(manifest.options) if manifest else {},
        "versions": dict(manifest.versions) if manifest else {},
    }


def describe_sources(dataset: Dataset, patterns: Sequence[str]) -> dict[str, Any]:
    """Return what `info --source` shows of some sources as JSON values: path, sources, source_count, splits.

    patterns: names or globs. Raise ArgumentError if a pattern matches no source.
    """
    chosen = dataset.of_sources(*patterns)
    paths = ((str(source["path"]), source) for source in dataset.sources())
    return {
        "path": str(dataset.path),
        "sources": [own for path, own in paths if any(is_source(path, pattern) for pattern in patterns)],
        "source_count": _source_count(dataset),
        "splits": {name: _counts(dataset, chosen[name], with_lengths=True) for name in SPLITS},
    }


def fact(name: str, value: object) -> str:
    """Return a recorded value with its name: ("documents", {"train": 1700}) -> "documents (train 1,700)"."""
    text = value_text(name, value)
    return f"{printable(name.replace('_', ' '))} {f'({text})' if isinstance(value, dict) and value else text}"


def value_text(name: str, value: object) -> str:
    """Return a recorded value for people: ("seed", 1700) -> "1700", ("documents", 1700) -> "1,700"."""
    if isinstance(value, dict) and value:
        return ", ".join(fact(str(key), inner) for key, inner in value.items())
    if value is None or value == {}:
        return "none" if value == {} or name.endswith("token") else "default"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value}" if name in ("seed", "id") else f"{value:,}"
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _source_count(dataset: Dataset) -> int:
    parts = (part.manifest for part in dataset.parts or (dataset,))
    return sum(manifest.sources.lines for manifest in parts if manifest is not None)


def _counts(dataset: Dataset, array: FlatTokensArray, with_lengths: bool) -> dict[str, Any]:
    return {
        "token_count": array.token_count,
        "seq_count": array.seq_count,
        "trained_tokens": _trained_tokens(dataset, array),
        "seq_tokens": lengths(array.seq_starts) if with_lengths else None,
    }


def _trained_tokens(dataset: Dataset, array: FlatTokensArray) -> int | None:
    """Return the trained tokens of a split, None without a loss mask. Without a manifest it reads the mask."""
    if array.loss_mask is None:
        return None
    manifest = dataset.manifest
    if manifest is not None and array is dataset[array.name]:
        return manifest.splits[array.name].trained_tokens
    return sum(int(np.count_nonzero(bits)) for _, bits in array.loss_mask.blocks(0, array.token_count))


def _storage(dataset: Dataset, array: FlatTokensArray) -> dict[str, Any]:
    stored = array.encoded_tokens.metadata
    assert stored is not None
    arrays = (array.encoded_tokens, array.seq_starts, array.loss_mask)
    disk_bytes = sum(size for own in arrays if own is not None for *_, size in walk(dataset.path / own.name))
    return {
        "max_token_id": array.max_token_id,
        "disk_bytes": disk_bytes,
        "disk_bytes_per_token": round(disk_bytes / array.token_count, 4) if array.token_count else None,
        "compression": stored.codecs.name,
        "checksum": _checksum(stored),
        "chunk_tokens": stored.chunk_elements,
        "shard_tokens": stored.shard_elements if stored.sharded else None,
    }


def lengths(seq_starts: Elements) -> dict[str, float] | None:
    """Return min, median, mean and max of the lengths of sequences in tokens, None without sequences.

    [0, 2, 5, 8] -> {"min": 2, "median": 3, "mean": 2.67, "max": 3}. Exact. Memory grows with the number of distinct
    lengths. Raise DatasetError if the starts do not rise.
    """
    found = counts_of(map(np.diff, blocks_of(seq_starts, STARTS_AT_ONCE)))
    if not found.total:
        return None
    ends, middle = np.cumsum(found.counts), ((found.total - 1) // 2, found.total // 2)
    low, high = (int(found.values[np.searchsorted(ends, at, side="right")]) for at in middle)
    mean = round(found.sum / found.total, 2)
    return {
        "min": int(found.values[0]),
        "median": (low + high) / 2,
        "mean": mean,
        "max": int(found.values[-1]),
    }


def _checksum(stored: ArrayMetadata) -> str | None:
    """Return the checksum that readers compare per Zarr chunk: "crc32c", the name of a compressor, or None.

    The metadata of format 2 do not mention the checksum of zstd, so the first frame decides.
    """
    if stored.codecs.crc32c:
        return "crc32c"
    if stored.codecs.compressor != "zstd":
        return "gzip" if stored.codecs.compressor == "gzip" else None
    with suppress(DatasetError), open_file(stored.file_path(0)) as file:  # `verify` reports a lost file
        return "zstd" if frame_header(file.part(0, min(file.size, 18)))[1] else None
    return None
