"""From shards to the files of the dataset: one run of an array at a time (its parts: convert/shards/runs.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe import _core
from convert.shards.runs import Run
from convert.shards.shard import ShardReader
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.writer import write_starts, write_tokens

# Of a write unit's ids as they are read and as they are encoded; kept, so that their pages are touched once a process.
_ids = np.empty(0, dtype=np.uint8)
_encoded = np.empty(0, dtype=np.uint32)


def write_run(root: Path, shards: Path, layout: ArrayLayout, run: Run) -> list[FileRecord]:
    """Write one run of a split's array into the dataset at `root`; the records of the files written."""
    if run.array == "starts":
        return write_starts(root, run.split, layout, run.first, starts_run(shards, run))
    files = []
    first = run.first
    for encoded in encoded_units(shards, run, layout.write_unit_tokens):
        files += write_tokens(root, run.split, layout, first, encoded)
        first += len(encoded)
    return files


def encoded_units(shards: Path, run: Run, unit_tokens: int) -> Iterator[NDArray[np.uint32]]:
    """The tokens of a run as `id * 2 + 1` at sequence starts and `id * 2` elsewhere, so many at a time.

    uint32[unit_tokens], the last one shorter; each is valid until the next. A unit is compressed while it lies in the
    core's cache.
    """
    global _encoded
    if len(_encoded) < unit_tokens:
        _encoded = np.empty(unit_tokens, dtype=np.uint32)
    filled = 0
    for part in run.parts:
        with ShardReader(shards, part.shape) as reader:
            starts = reader.starts_within(run.split, part.start, part.stop)
            start = part.start
            while start < part.stop:
                stop = min(part.stop, start + unit_tokens - filled)
                low, high = starts.searchsorted(np.array([start, stop], dtype=np.uint64))
                ids = reader.tokens(
                    run.split, start, stop, _room_for_ids(stop - start, part.shape.token_bytes)
                )
                _core.flag_ids(ids, starts[low:high], start, _encoded[filled:])
                filled += stop - start
                start = stop
                if filled == unit_tokens:
                    yield _encoded[:unit_tokens]
                    filled = 0
    if filled:
        yield _encoded[:filled]


def _room_for_ids(count: int, token_bytes: int) -> NDArray[Any]:
    global _ids
    if len(_ids) < count * token_bytes:
        _ids = np.empty(count * token_bytes, dtype=np.uint8)
    return _ids[: count * token_bytes].view(f"u{token_bytes}")


def starts_run(shards: Path, run: Run) -> NDArray[np.uint64]:
    """The sequence starts of a run, from the array's first token: uint64[run.item_count]."""
    starts = np.empty(run.item_count, dtype=np.uint64)
    filled = 0
    for part in run.parts:
        with ShardReader(shards, part.shape) as reader:
            own = reader.starts(run.split, part.start, part.stop)
        np.add(own, np.uint64(part.token_offset), out=starts[filled : filled + len(own)])
        filled += len(own)
    if run.closing is not None:
        starts[filled] = run.closing
    return starts
