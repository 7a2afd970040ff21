"""Totals up, offsets down while shards come in, and runs that cover both arrays once in whole write units."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import partial
from itertools import accumulate, groupby
from pathlib import Path

import numpy as np
import pytest
from shards import add_rows, change_part, ids_of, record_of, writer_of

from convert.journal import Journal, Recorded
from convert.plan import ShardId
from convert.shards import runs as runs_module
from convert.shards import shard as shard_module
from convert.shards.assembly import Assembly
from convert.shards.write_run import WrittenFile, encoded_units, starts_run
from convert.shards.merge_tree import MergeTree, Totals
from convert.shards.runs import ARRAYS, Run
from convert.shards.shard import PARTS, ShardRecord, token_dtype
from convert.shards.shard_reader import DamagedShard, ShardReader, is_intact
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord
from flat_tokens.storage.token_facts import TokenFacts


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
    folder: Path, index: int, sequences: dict[str, list[list[int]]], token_bytes: int = 2
) -> ShardRecord:
    with writer_of(folder, index, 2**31 - 1, token_bytes) as shard:
        for place, split in enumerate(("train", "validation")):
            add_rows(shard, place, sequences[split])
        return record_of(shard, index, token_bytes)


def dealt_to_chunks(records: list[ShardRecord], rng: random.Random) -> list[ShardRecord]:
    """The same shards as those of fewer text chunks, each of one or more."""
    dealt: list[ShardRecord] = []
    shard = ShardId(0)
    for place, record in enumerate(records):
        is_last = rng.random() < 0.5 or place == len(records) - 1
        dealt.append(replace(record, id=shard, is_last=is_last))
        shard = ShardId(shard.chunk_index + 1) if is_last else shard._replace(number=shard.number + 1)
    return dealt


def any_order(records: list[ShardRecord], rng: random.Random) -> list[ShardRecord]:
    """The chunks mixed, the shards of each in their order."""
    left = [list(own) for _, own in groupby(records, lambda record: record.id.chunk_index)]
    order = []
    while left:
        own = rng.choice(left)
        order.append(own.pop(0))
        if not own:
            left.remove(own)
    return order


def runs_of(order: list[ShardRecord], layout: ArrayLayout) -> tuple[Assembly, list[Run]]:
    """All runs, given out while the shards come in `order`; each as soon as its shards and those before are there."""
    assembly = Assembly(sum(record.is_last for record in order), layout)
    runs = list(assembly.ready()) if not order else []
    for record in order:
        assembly.add(record)
        for run in assembly.ready():
            there = {record.id for record in assembly.records()}
            assert there.issuperset(own.shape.id for own in run.slices)
            runs.append(run)
    return assembly, runs


@pytest.mark.parametrize("block_bytes", [16, 1 << 18])
@pytest.mark.parametrize("token_bytes", [2, 4])
@pytest.mark.parametrize("unit", [1, 2, 3, 8, 1000])
@pytest.mark.parametrize("shards", [0, 1, 2, 5])
def test_runs_put_the_shards_together(
    shards: int,
    unit: int,
    token_bytes: int,
    block_bytes: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shard_module, "DIGEST_BLOCK_BYTES", block_bytes)
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
        records.append(shard_of(tmp_path, index, own, token_bytes))
        for split in rows:
            rows[split] += own[split]
    records = dealt_to_chunks(records, rng)
    assembly, all_runs = runs_of(any_order(records, rng), layout)
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
    unneeded: list[tuple[ShardId, str]] = []
    for run in all_runs:
        read = {(own.shape.id, name) for own in run.slices for name in run.reads}
        assert not read.intersection(unneeded)
        assert all(part in assembly.needed_parts(shard) for shard, part in read)
        unneeded += assembly.written(run, [])
    assert sorted(unneeded) == sorted(
        (record.id, part) for record in records for part in PARTS if record.shape.part_bytes(part)
    )
    assert not any(assembly.needed_parts(record.id) for record in records)


def test_ids_keep_their_upper_bit(tmp_path: Path) -> None:
    largest = 2**31 - 1
    record = shard_of(tmp_path, 0, {"train": [[largest, 65536]], "validation": []}, 4)
    _, runs = runs_of([record], ArrayLayout.create())
    units = [part.tolist() for part in encoded_units(tmp_path, runs[0], 8)]
    assert units == [[largest * 2 + 1, 65536 * 2]]


@pytest.mark.parametrize(("highest", "dtype"), [(0, "u2"), (65535, "u2"), (65536, "u4"), (2**31 - 1, "u4")])
def test_the_narrowest_type(highest: int, dtype: str) -> None:
    assert token_dtype(highest) == np.dtype(dtype)


@pytest.mark.parametrize("block_bytes", [8, 1 << 18])
@pytest.mark.parametrize("flush_bytes", [1, 1 << 20])
def test_a_shard_is_intact_only_with_every_byte(
    flush_bytes: int, block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "DIGEST_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", flush_bytes)
    record = shard_of(tmp_path, 3, {"train": [[1, 2], [3]], "validation": [[4]]})
    for part in PARTS:
        others = [other for other in PARTS if other != part]
        for byte in range(record.shape.part_bytes(part)):
            change_part(tmp_path, record, part, byte)
            assert not is_intact(tmp_path, record)
            assert is_intact(tmp_path, record, others)
            change_part(tmp_path, record, part, byte)
        assert is_intact(tmp_path, record)
    for name in {name for name, _ in record.places}:
        data = (tmp_path / name).read_bytes()
        for damaged in (b"", data[:-1]):
            (tmp_path / name).write_bytes(damaged)
            assert not is_intact(tmp_path, record)
        (tmp_path / name).unlink()
        assert not is_intact(tmp_path, record)
        (tmp_path / name).write_bytes(data)
    assert is_intact(tmp_path, record)


def said(recorded: Recorded, run: Run) -> tuple[dict[int, ShardRecord], list[WrittenFile] | None, int | None]:
    return recorded.shards, recorded.run(run), recorded.threshold(7)


def test_the_journal_says_what_was_finished_and_nothing_of_torn_lines(tmp_path: Path) -> None:
    records = [shard_of(tmp_path, index, {"train": [[1, 2], [3]], "validation": [[4]]}) for index in (3, 1)]
    run = Run("train", "tokens", 8, ())
    files = [
        WrittenFile(FileRecord("train/0", 5, "ab"), TokenFacts(4, 2, 2**64 - 1, 9)),
        WrittenFile(FileRecord("train/1", 6, "cd")),
    ]
    journal = Journal(tmp_path)
    assert not journal.holds_work
    assert said(journal.recorded(), run) == ({}, None, None)
    sizes = [0]
    for write in (
        lambda: journal.finish(records[0]),
        lambda: journal.finish_run(run, files),
        lambda: journal.keep_threshold(7, 2**64),
        lambda: journal.finish(records[1]),
    ):
        write()
        sizes.append(journal.path.stat().st_size)
    assert journal.holds_work
    everything = ({ShardId(3): records[0], ShardId(1): records[1]}, files, 2**64)
    assert said(journal.recorded(), run) == everything
    assert list(journal.recorded().shards) == [(3, 0), (1, 0)]  # the order in which they were finished
    assert [record.places for record in journal.recorded().shards.values()] == [r.places for r in records]
    longer = Run("train", "tokens", 8, (), closing=9)
    assert journal.recorded().run(longer) is journal.recorded().run(Run("train", "starts", 8, ())) is None

    data = journal.path.read_bytes()
    for length in range(
        len(data)
    ):  # cut anywhere, the lines before the cut count, and those that come after it
        journal.path.write_bytes(data[:length])
        whole = sum(size <= length for size in sizes[1:])
        shards = {record.id: record for record in records[: (whole >= 1) + (whole >= 4)]}
        assert said(journal.recorded(), run)[0] == shards
        journal.keep_threshold(7, 5)
        assert said(journal.recorded(), run) == (shards, files if whole >= 2 else None, 5)
    for place in range(len(data)):  # one line at most is lost, and no other is made up
        journal.path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        found = said(journal.recorded(), run)
        assert all(record in records for record in found[0].values())
        assert len(found[0]) + (found[1] == files) + (found[2] == 2**64) >= 3 - (data[place] == 10)
    journal.path.write_bytes(bytes(5000))
    assert said(journal.recorded(), run) == ({}, None, None)


def test_the_last_line_about_a_shard_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    records = [shard_of(tmp_path, index, {"train": [[1]], "validation": []}) for index in (0, 1, 0)]
    assert len({record.places[0] for record in records}) == 3
    for record in records:
        journal.finish(record)
    found = journal.recorded().shards
    assert [(shard, record.places) for shard, record in found.items()] == [
        ((1, 0), records[1].places),
        ((0, 0), records[2].places),
    ]


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("flush_bytes", [1, 1 << 20])
def test_no_byte_of_a_shard_is_merged_that_its_writer_did_not_record(
    flush_bytes: int, array: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "DIGEST_BLOCK_BYTES", 16)
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", flush_bytes)
    monkeypatch.setattr(runs_module, "RUN_TOKENS", 8)
    layout = ArrayLayout.create(chunk_tokens=8)
    rows = [list(range(length)) for length in (3, 1, 20, 2, 2)]
    record = shard_of(tmp_path, 7, {"train": rows, "validation": rows[:2]})
    _, runs = runs_of([replace(record, id=ShardId(0))], layout)
    merge = {
        "tokens": lambda run: list(encoded_units(tmp_path, run, 8)),
        "starts": partial(starts_run, tmp_path),
    }
    own = [run for run in runs if run.array == array]
    reads = {part for run in own for part in run.reads}
    for part in PARTS:
        for byte in range(record.shape.part_bytes(part)):
            change_part(tmp_path, record, part, byte)
            damaged = []
            for run in own:
                try:
                    merge[array](run)
                except DamagedShard as error:
                    damaged.append(error.damage)
            change_part(tmp_path, record, part, byte)
            assert bool(damaged) == (part in reads)
            for damage in damaged:
                assert (damage.shard, damage.part) == (ShardId(0), part)
                assert re.search(
                    r"/7\.0-[0-9a-f]{16}\.[a-z-]+, bytes \d+ to \d+ are not what was", damage.text
                )
    for run in own:
        merge[array](run)


def test_a_shard_shorter_than_its_record_or_gone_is_not_read_as_zeros(tmp_path: Path) -> None:
    record = shard_of(tmp_path, 0, {"train": [[1, 2, 3]], "validation": []})
    path = tmp_path / record.places[0][0]
    data = path.read_bytes()
    _, runs = runs_of([record], ArrayLayout.create())
    path.write_bytes(data[:5])
    with pytest.raises(DamagedShard, match="the file is shorter"):
        list(encoded_units(tmp_path, runs[0], 8))
    path.unlink()
    with pytest.raises(DamagedShard, match="is not there"):
        list(encoded_units(tmp_path, runs[0], 8))


def test_a_slice_of_a_shard_brings_the_digests_it_needs_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "DIGEST_BLOCK_BYTES", 16)
    rng = random.Random(5)
    rows = [[rng.randrange(999) for _ in range(rng.randint(1, 5))] for _ in range(30)]
    flat = [id_ for row in rows for id_ in row]
    record = shard_of(tmp_path, 0, {"train": rows, "validation": []})
    for start in range(0, len(flat), 3):
        for stop in (start + 1, start + 8, start + 9, len(flat)):
            shape = record.shape.for_slice("train", start, min(stop, len(flat)))
            blocks = -(-min(stop, len(flat)) * 2 // 16) - start * 2 // 16
            assert [len(digests) for digests in shape.digests] == [8 * blocks, 0, 8 * 15, 0]
            with ShardReader(tmp_path, record.shape) as reader:
                assert ids_of(reader, "train", start, min(stop, len(flat))) == flat[start:stop]
