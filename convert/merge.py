"""From shards to the files of the dataset: one run of an array at a time (convert/runs.py says which parts it has)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convert.runs import Run
from convert.shard import ShardReader
from flat_tokens.layout import ArrayLayout
from flat_tokens.manifest import FileRecord
from flat_tokens.writer import write_starts, write_tokens


def write_run(root: Path, shards: Path, layout: ArrayLayout, run: Run) -> list[FileRecord]:
    """Write one run of a split's array into the dataset at `root`; the records of the files written."""
    if run.array == "tokens":
        return write_tokens(root, run.split, layout, run.first, encoded_run(shards, run))
    return write_starts(root, run.split, layout, run.first, starts_run(shards, run))


def encoded_run(shards: Path, run: Run) -> NDArray[np.uint32]:
    """The tokens of a run as `id * 2 + 1` at sequence starts and `id * 2` elsewhere: uint32[run.item_count]."""
    encoded = np.empty(run.item_count, dtype=np.uint32)
    filled = 0
    for part in run.parts:
        out = encoded[filled : filled + part.stop - part.start]
        with ShardReader(shards, part.shape) as reader:
            np.left_shift(reader.tokens(run.split, part.start, part.stop), 1, out=out, dtype=np.uint32)
            starts = reader.starts_within(run.split, part.start, part.stop)
        out[starts - np.uint64(part.start)] += np.uint32(1)
        filled += len(out)
    return encoded


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
