"""From shards to the files of the dataset: one run of an array at a time (its slices: convert/shards/runs.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convert import _core
from convert.shards.runs import Run
from convert.shards.shard import NOT_TRAINED
from convert.shards.shard_reader import PartReader
from convert.shards.shard_store import ShardStore
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts
from flat_tokens.writer import Destination, write_mask, write_places, write_starts, write_tokens_with_facts
from tokenmill.engines.worker_process import take_step
from tokenmill.inputs.buffers import thread_buffer


class WrittenFile(NamedTuple):
    """A file of the dataset; facts: of one of encoded_tokens, by which it is verified without decoding it."""

    record: FileRecord
    facts: TokenFacts | None = None


def write_run(
    root: Destination,
    shards: ShardStore,
    layout: ArrayLayout,
    run: Run,
    temporary: Path,
    has_mask: bool = False,
) -> list[WrittenFile]:
    """Write one run of a split's array into the dataset at `root`; the files written. has_mask: whether the ids of the
    shards have NOT_TRAINED; the run of tokens writes the loss mask from it, too.

    Files get their names when they are whole, and every attempt writes the same bytes: one that comes late, or from a
    worker whose parent is gone, does no harm. temporary: a folder where they lie before, on the file system of `root`.
    DamagedShard if a shard is not what its writer recorded; then the run is to be written again.
    """
    if run.array != "tokens":
        write = write_starts if run.array == "starts" else write_places
        records = write(root, run.split, layout, run.first, sequences_run(shards, run), temporary)
        return [WrittenFile(record) for record in records]
    written = []
    first = run.first
    trained = np.empty(layout.write_unit_tokens, np.bool_) if has_mask else None
    for encoded in encoded_units(shards, run, layout.write_unit_tokens, trained):
        take_step()  # a worker whose parent is gone must not write beside the next run's
        files = write_tokens_with_facts(root, run.split, layout, first, encoded, temporary)
        written += [WrittenFile(record, facts) for record, facts in files]
        if trained is not None:
            mask = write_mask(root, run.split, layout, first, trained[: len(encoded)], temporary)
            written += map(WrittenFile, mask)
        first += len(encoded)
    return written


def encoded_units(
    shards: ShardStore, run: Run, unit_tokens: int, trained: NDArray[np.bool_] | None = None
) -> Iterator[NDArray[np.uint32]]:
    """The tokens of a run as `id * 2 + 1` at sequence starts and `id * 2` elsewhere, so many at a time.

    uint32[unit_tokens], the last one shorter; each is valid until the next. A unit is compressed while it lies in the
    core's cache. trained: gets which of them are to be learned, of ids with NOT_TRAINED.
    """
    encoded = thread_buffer("encoded tokens", unit_tokens, np.uint32)
    filled = 0
    for own in run.slices:
        with PartReader(shards, own.parts[1]) as reader:
            starts = reader.starts_within(own.start, own.stop)
        with PartReader(shards, own.parts[0]) as reader:
            for first, ids in reader.items(own.start, own.stop):
                place, stop = first, first + len(ids)
                while place < stop:
                    end = min(stop, place + unit_tokens - filled)
                    low, high = starts.searchsorted(np.array([place, end], dtype=np.uint64))
                    _core.flag_ids(
                        ids[place - first : end - first], starts[low:high], place, encoded[filled:]
                    )
                    if trained is not None:
                        part = trained[filled : filled + end - place]
                        np.less(ids[place - first : end - first], NOT_TRAINED, out=part)
                    filled += end - place
                    place = end
                    if filled == unit_tokens:
                        yield encoded
                        filled = 0
    if filled:
        yield encoded[:filled]


def sequences_run(shards: ShardStore, run: Run) -> NDArray[np.uint64]:
    """The starts of a run, from the array's first token, or its places: uint64[run.item_count]."""
    values = np.empty(run.item_count, dtype=np.uint64)
    filled = 0
    for own in run.slices:
        room = values[filled : filled + own.stop - own.start]
        with PartReader(shards, own.parts[0]) as reader:
            for first, found in reader.items(own.start, own.stop):
                np.add(found, np.uint64(own.token_offset), out=room[first - own.start :][: len(found)])
        filled += len(room)
    if run.closing is not None:
        values[filled] = run.closing
    return values
