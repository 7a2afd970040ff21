"""Shards in, runs out: in whatever order shards come, runs cover both arrays once in whole write units."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from shards import change_part, items_of, ledger_of, shard_of

from convert.driver.ledger import ARRAYS, Ledger
from convert.errors import BrokenInvariant
from convert.planning.plan import ShardId
from convert.shards import runs as runs_module
from convert.shards import shard as shard_module
from convert.shards.runs import NO_SHARD, Run
from convert.shards.shard import PARTS, ShardRecord, token_dtype
from convert.shards.shard_reader import DamagedShard
from convert.shards.shard_store import shards_at
from convert.shards.write_run import encoded_units, sequences_run
from flat_tokens.storage.layout import ArrayLayout


def dealt_to_chunks(records: list[ShardRecord], rng: random.Random) -> list[ShardRecord]:
    """The same shards as those of fewer text chunks, each of one or more."""
    dealt: list[ShardRecord] = []
    shard = ShardId(0)
    for place, record in enumerate(records):
        is_last = rng.random() < 0.5 or place == len(records) - 1
        dealt.append(replace(record, id=shard, is_last=is_last))
        shard = ShardId(shard.chunk_index + 1) if is_last else shard._replace(number=shard.number + 1)
    return dealt


def runs_of(order: list[ShardRecord], layout: ArrayLayout) -> tuple[Ledger, list[Run]]:
    """All runs, given out while the shards come in `order`; each as soon as its shards and those before are there."""
    ledger = ledger_of(sum(record.is_last for record in order), layout)
    runs = list(ledger.ready()) if not order else []
    there: set[ShardId] = set()
    for record in order:
        ledger.add(record)
        there.add(record.id)
        for run in ledger.ready():
            assert there.issuperset(
                own.parts[0].shard for own in run.slices if own.parts[0].shard != NO_SHARD
            )
            runs.append(run)
    assert ledger.is_complete
    return ledger, runs


@pytest.mark.parametrize("inline_bytes", [0, 24, 1 << 10])
@pytest.mark.parametrize(("block_bytes", "token_bytes"), [(16, 2), (16, 4), (1 << 18, 2)])
@pytest.mark.parametrize("unit", [1, 2, 3, 8, 1000])
@pytest.mark.parametrize("shards", [0, 1, 2, 5])
def test_runs_put_the_shards_together(
    shards: int,
    unit: int,
    token_bytes: int,
    block_bytes: int,
    inline_bytes: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shard_module, "DIGEST_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr("convert.shards.shard_writer.INLINE_BYTES", inline_bytes)
    rng = random.Random(f"{shards} {unit}")
    monkeypatch.setattr(runs_module, "RUN_TOKENS", (2 * unit, 2 * unit))
    layout = ArrayLayout.create(chunk_tokens=unit)
    rows: dict[str, list[list[int]]] = {"train": [], "validation": []}
    placed: dict[str, list[int]] = {"train": [], "validation": []}
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
            placed[split].append(len(own[split]))
    records = dealt_to_chunks(records, rng)
    ledger, all_runs = runs_of(rng.sample(records, len(records)), layout)
    for split, expected in rows.items():
        total = ledger.counts[split]
        assert (total.tokens, total.sequences) == (sum(map(len, expected)), len(expected))
        runs = [run for run in all_runs if run.split == split]
        tokens = [run for run in runs if run.array == "tokens"]
        starts = [run for run in runs if run.array == "starts"]
        places = [run for run in runs if run.array == "places"]
        starts_unit = layout.write_unit_starts
        for some, size in ((tokens, layout.write_unit_tokens), (starts, starts_unit), (places, starts_unit)):
            assert all(run.first % size == 0 for run in some)
            assert all(run.item_count % size == 0 for run in some[:-1])
        encoded = [
            value
            for run in tokens
            for part in encoded_units(shards_at(tmp_path), run, unit)
            for value in part.tolist()
        ]
        assert encoded == [id_ * 2 + (place == 0) for row in expected for place, id_ in enumerate(row)]
        assert [value for run in starts for value in sequences_run(shards_at(tmp_path), run).tolist()] == [
            0,
            *accumulate(map(len, expected)),
        ]
        found = [value for run in places for value in sequences_run(shards_at(tmp_path), run).tolist()]
        assert found == [place for count in placed[split] for place in range(count)]
    # Each file is told to be unneeded once, after the last run that reads it.
    unneeded: list[str] = []
    assert ledger.unmerged_bytes == sum(map(ledger.bytes_to_merge, records))
    with pytest.raises(BrokenInvariant) if records else nullcontext():
        ledger.check_whole()
    for run in all_runs:
        read = {part.file for own in run.slices for part in own.parts} - {""}
        assert not read.intersection(unneeded)
        assert read <= ledger.needed_files()
        unneeded += ledger.written(run, [])
    assert sorted(unneeded) == sorted({name for record in records for name, _ in record.places if name})
    assert not ledger.needed_files()
    assert ledger.unmerged_bytes == 0
    ledger.check_whole()


def test_a_shard_comes_once_and_its_counts_add_up(tmp_path: Path) -> None:
    record = shard_of(tmp_path, 0, {"train": [[1], [2, 3]], "validation": []})
    ledger = ledger_of(2, ArrayLayout.create())
    ledger.add(replace(record, id=ShardId(1)))
    with pytest.raises(BrokenInvariant, match="chunk 1"):
        ledger.add(replace(record, id=ShardId(1)))
    ledger.add(record)
    with pytest.raises(BrokenInvariant, match="chunk 0"):
        ledger.add(record)
    for change, where in (
        ({"train": record.train._replace(empty=1)}, "text chunk 0, train: 2 .*2 .*1 empty"),
        ({"digests": bytes(8)}, "text chunk 0: 1 .*blocks.*0"),
        ({"intake": replace(record.intake, records=3)}, "text chunk 0: 3 records.*2 .*0 skipped"),
    ):
        with pytest.raises(BrokenInvariant, match=where):
            ledger_of(1, ArrayLayout.create()).add(replace(record, **change))


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ([], ([], 0)),
        ([0, 1], ([], 2)),
        ([1, 3], ([0, 2], 4)),
        ([0, 2], ([1], 3)),
        ([0, 1, 2, 3, 4], ([], None)),
        ([4, 2], ([0, 1, 3], None)),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_what_is_missing_of_a_text_chunk(
    there: list[int], missing: tuple[list[int], int | None], before: bool, tmp_path: Path
) -> None:
    """before: whether the text chunks before it are there, so that its shards are taken as they come."""
    record = shard_of(tmp_path, 0, {"train": [[1]], "validation": []})
    ledger = ledger_of(3, ArrayLayout.create())
    if before:
        ledger.add(record)
    for number in there:
        ledger.add(replace(record, id=ShardId(1, number), is_last=number == 4))
    assert ledger.missing(1) == missing
    assert ledger.missing(2) == ([], 0)
    assert ledger.missing(0) == (([], None) if before else ([], 0))


def test_ids_keep_their_upper_bit(tmp_path: Path) -> None:
    largest = 2**31 - 1
    record = shard_of(tmp_path, 0, {"train": [[largest, 65536]], "validation": []}, 4)
    _, runs = runs_of([record], ArrayLayout.create())
    units = [part.tolist() for part in encoded_units(shards_at(tmp_path), runs[0], 8)]
    assert units == [[largest * 2 + 1, 65536 * 2]]


@pytest.mark.parametrize(("highest", "dtype"), [(0, "u2"), (65535, "u2"), (65536, "u4"), (2**31 - 1, "u4")])
def test_the_narrowest_type(highest: int, dtype: str) -> None:
    assert token_dtype(highest) == np.dtype(dtype)


@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("flush_bytes", [1, 1 << 20])
def test_no_byte_of_a_shard_is_merged_that_its_writer_did_not_record(
    flush_bytes: int, array: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "DIGEST_BLOCK_BYTES", 16)
    monkeypatch.setattr("convert.shards.part_writer.FLUSH_BYTES", flush_bytes)
    monkeypatch.setattr("convert.shards.shard_writer.INLINE_BYTES", 0)
    monkeypatch.setattr(runs_module, "RUN_TOKENS", (8, 8))
    layout = ArrayLayout.create(chunk_tokens=8)
    rows = [list(range(length)) for length in (3, 1, 20, 2, 2)]
    record = shard_of(tmp_path, 7, {"train": rows, "validation": rows[:2]})
    _, runs = runs_of([replace(record, id=ShardId(0))], layout)
    merge: dict[str, Callable[[Run], object]] = {
        "tokens": lambda run: list(encoded_units(shards_at(tmp_path), run, 8)),
        "starts": partial(sequences_run, shards_at(tmp_path)),
        "places": partial(sequences_run, shards_at(tmp_path)),
    }
    own = [run for run in runs if run.array == array]
    reads = {part.name for run in own for each in run.slices for part in each.parts}
    for part in PARTS:
        for byte in range(record.part(part).size):
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
                assert re.search(r"/7\.0-[0-9a-f]{16}\.[a-z-]+, bytes \d+ to \d+: ", damage.text)
    for run in own:
        merge[array](run)


def test_a_shard_shorter_than_its_record_or_gone_is_not_read_as_zeros(tmp_path: Path) -> None:
    record = shard_of(tmp_path, 0, {"train": [[1, 2, 3]], "validation": []})
    path = tmp_path / record.places[0][0]
    data = path.read_bytes()
    _, runs = runs_of([record], ArrayLayout.create())
    path.write_bytes(data[:5])
    with pytest.raises(DamagedShard):
        list(encoded_units(shards_at(tmp_path), runs[0], 8))
    path.unlink()
    with pytest.raises(DamagedShard):
        list(encoded_units(shards_at(tmp_path), runs[0], 8))


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
            part = record.part("train").for_items(start, min(stop, len(flat)))
            blocks = -(-min(stop, len(flat)) * 2 // 16) - start * 2 // 16
            assert len(part.digests) == 8 * blocks
            assert items_of(tmp_path, record.part("train"), start, min(stop, len(flat))) == flat[start:stop]
    assert len(record.part("train-starts").digests) == 8 * 15
