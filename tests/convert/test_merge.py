"""Totals up, offsets down while shards come in, and runs that cover both arrays once in whole write units."""

from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from shards import record_of

from convert.errors import BrokenInvariant
from convert.journal import Journal
from convert.shards import runs as runs_module
from convert.shards.assembly import Assembly
from convert.shards.merge import encoded_units, starts_run
from convert.shards.merge_tree import MergeTree, Totals
from convert.shards.runs import Run
from convert.shards.shard import (
    PARTS,
    ShardReader,
    ShardRecord,
    is_intact,
    part_path,
    token_dtype,
)
from convert.shards.shard_writer import ShardWriter
from flat_tokens.storage.layout import ArrayLayout


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33])
def test_the_tree_knows_what_lies_before_as_soon_as_it_can(count: int) -> None:
    rng = random.Random(count)
    leaves = [Totals(rng.randrange(5), rng.randrange(3), rng.randrange(100)) for _ in range(count)]
    tree = MergeTree(count)
    known: set[int] = set()
    for index in rng.sample(range(count), count):
        assert tree.total is None
        tree.add(index, leaves[index])
        known.add(index)
        for leaf in range(count):
            before = sum(leaves[:leaf], Totals()) if known.issuperset(range(leaf)) else None
            assert tree.offset(leaf) == before
    assert tree.total == sum(leaves, Totals())


def shard_of(
    folder: Path, index: int, sequences: dict[str, list[list[int]]], dtype: str = "u2"
) -> ShardRecord:
    with ShardWriter(folder, index, np.dtype(dtype), 2**31 - 1) as shard:
        for place, split in enumerate(("train", "validation")):
            rows = sequences[split]
            lengths = np.array([len(row) for row in rows], dtype=np.uint64)
            shard.add(place, np.array([id_ for row in rows for id_ in row], dtype=np.uint32), lengths)
        return record_of(shard, index, np.dtype(dtype).itemsize)


def runs_of(records: list[ShardRecord], layout: ArrayLayout, order: list[int]) -> tuple[Assembly, list[Run]]:
    """All runs, given out while the shards come in `order`; each as soon as its shards and those before are there."""
    assembly = Assembly(len(records), layout)
    runs = list(assembly.ready()) if not records else []
    for index in order:
        assembly.add(records[index])
        for run in assembly.ready():
            there = {record.chunk_index for record in assembly.records if record is not None}
            assert there.issuperset(part.shape.chunk_index for part in run.parts)
            runs.append(run)
    return assembly, runs


@pytest.mark.parametrize("dtype", ["u2", "u4"])
@pytest.mark.parametrize("unit", [1, 2, 3, 8, 1000])
@pytest.mark.parametrize("shards", [0, 1, 2, 5])
def test_runs_put_the_shards_together(
    shards: int, unit: int, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{shards} {unit}")
    monkeypatch.setattr(runs_module, "RUN_TOKENS", 2 * unit)
    layout = ArrayLayout.create(chunk_tokens=unit)
    rows: dict[str, list[list[int]]] = {"train": [], "validation": []}
    records = []
    for index in range(shards):
        own = {
            split: [
                [rng.randrange(65536) for _ in range(rng.randint(1, 9))] for _ in range(rng.choice([0, 1, 6]))
            ]
            for split in rows
        }
        records.append(shard_of(tmp_path, index, own, dtype))
        for split in rows:
            rows[split] += own[split]
    assembly, all_runs = runs_of(records, layout, rng.sample(range(shards), shards))
    for split, expected in rows.items():
        total = assembly.total(split)
        assert (total.tokens, total.sequences) == (sum(map(len, expected)), len(expected))
        runs = [run for run in all_runs if run.split == split]
        tokens = [run for run in runs if run.array == "tokens"]
        starts = [run for run in runs if run.array == "starts"]
        for some, size in ((tokens, layout.write_unit_tokens), (starts, layout.write_unit_starts)):
            assert all(run.first % size == 0 for run in some)
            assert all(run.item_count % size == 0 for run in some[:-1])
        encoded = [
            value for run in tokens for part in encoded_units(tmp_path, run, unit) for value in part.tolist()
        ]
        assert encoded == [id_ * 2 + (place == 0) for row in expected for place, id_ in enumerate(row)]
        assert [value for run in starts for value in starts_run(tmp_path, run).tolist()] == [
            0,
            *accumulate(map(len, expected)),
        ]
    # Each part with items is told to be unneeded once, after the last run that reads it.
    unneeded: list[tuple[int, str]] = []
    for run in all_runs:
        read = {(part.shape.chunk_index, name) for part in run.parts for name in run.reads}
        assert not read.intersection(unneeded)
        assert all(part in assembly.needed_parts(index) for index, part in read)
        unneeded += assembly.written(run, [])
    assert sorted(unneeded) == sorted(
        (record.chunk_index, part) for record in records for part in PARTS if record.shape.part_bytes(part)
    )
    assert not any(assembly.needed_parts(index) for index in range(shards))


def test_ids_keep_their_upper_bit(tmp_path: Path) -> None:
    largest = 2**31 - 1
    record = shard_of(tmp_path, 0, {"train": [[largest, 65536]], "validation": []}, "u4")
    _, runs = runs_of([record], ArrayLayout.create(), [0])
    units = [part.tolist() for part in encoded_units(tmp_path, runs[0], 8)]
    assert units == [[largest * 2 + 1, 65536 * 2]]


@pytest.mark.parametrize(("highest", "dtype"), [(0, "u2"), (65535, "u2"), (65536, "u4"), (2**31 - 1, "u4")])
def test_the_narrowest_type(highest: int, dtype: str) -> None:
    assert token_dtype(highest) == np.dtype(dtype)


def test_the_journal_trusts_only_intact_shards(tmp_path: Path) -> None:
    record = shard_of(tmp_path, 3, {"train": [[1, 2], [3]], "validation": [[4]]})
    journal = Journal(tmp_path)
    assert journal.finished(3) is None
    journal.finish(record)
    assert journal.finished(3) == record
    assert journal.finished(2) is None

    for part in PARTS:
        path = part_path(tmp_path, 3, part)
        others = [other for other in PARTS if other != part]
        data = path.read_bytes()
        for damaged in (
            b"",
            data[:-1],
            data + b"\0",
            *(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :] for i in range(len(data))),
        ):
            path.write_bytes(damaged)
            assert journal.finished(3) is None
        path.unlink()
        assert not is_intact(tmp_path, record)
        assert journal.finished(3, others) == journal.recorded(3) == record
        path.write_bytes(data)
        assert journal.finished(3) == record

    entry = journal.path(3)
    text = entry.read_bytes()
    for length in range(len(text)):
        entry.write_bytes(text[:length])
        assert journal.finished(3) is journal.recorded(3) is None
    for other in (
        b"[]",
        b"3",
        b'{"chunk_index": 3}',
        b"\xff",
        text.replace(b'"chunk_index": 3', b'"chunk_index": 4'),
    ):
        entry.write_bytes(other)
        assert journal.finished(3) is None


def test_a_shard_shorter_than_its_record_is_not_read_as_zeros(tmp_path: Path) -> None:
    record = shard_of(tmp_path, 0, {"train": [[1, 2, 3]], "validation": []})
    path = part_path(tmp_path, 0, "train")
    path.write_bytes(path.read_bytes()[:-1])
    with (
        ShardReader(tmp_path, record.shape) as reader,
        pytest.raises(BrokenInvariant, match="shorter than its record"),
    ):
        reader.tokens("train", 0, 3)
