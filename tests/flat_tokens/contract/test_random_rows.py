"""The contract of random access: torch.RowDataset and grain.RowSource equal the packed stream and the packs."""

from __future__ import annotations

import importlib.util
import itertools
import random
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from counting_store import CountingStore, copy_dataset
from small_datasets import write_dataset

import flat_tokens
from flat_tokens import ArgumentError, ArrayLayout, PackedSequences
from flat_tokens.grain import RowSource
from tokenmill.stores import open_store

LAYOUTS = [
    ArrayLayout.create(2, 16),
    ArrayLayout.create(2, 16, compression="none"),
    ArrayLayout.create(3, 16, 64, "lz4"),
]


def source_of(adapter: str, array: Any, length: int, **options: Any) -> Any:
    if adapter == "grain":
        return RowSource(array, length, **options)
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    from flat_tokens.torch import RowDataset

    return RowDataset(array, length, **options)


@pytest.mark.promise("batches")
@pytest.mark.parametrize("adapter", ["grain", "torch"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_items_are_the_rows(tmp_path: Path, seed: int, layout: ArrayLayout, adapter: str) -> None:
    rng = random.Random(seed)
    length, count = rng.choice([1, 5, 7, 30]), rng.choice([9, 60])
    ends = np.cumsum([0, *(rng.randint(1, 9) for _ in range(count))]).tolist()
    sequences = [list(range(first, end)) for first, end in itertools.pairwise(ends)]
    trained = [rng.random() < 0.6 for _ in range(ends[-1])]
    masks = {"train": trained, "validation": []} if seed % 2 else None
    write_dataset(tmp_path / "d", sequences, [], layout, masks)
    train = flat_tokens.open(tmp_path / "d").train
    drop_last, ignore = rng.random() < 0.5, rng.random() < 0.5
    options = {"drop_last": drop_last, "ignore_first_labels": ignore}
    fields = ("input_ids", "labels", "is_seq_start", "lengths")
    source = source_of(adapter, train, length, fields=fields, **options)
    shifted = source_of(adapter, train, length, fields=("inputs", "targets"), start_id=99, **options)
    rows = ends[-1] // length + (not drop_last and ends[-1] % length > 0)
    assert len(source) == len(shifted) == rows
    numbers = rng.choices(range(-rows, rows), k=20) if rows else []
    for number, item, other in zip(
        numbers, source.__getitems__(numbers), shifted.__getitems__(numbers), strict=True
    ):
        first = number % rows * length
        ids = list(range(first, min(first + length, ends[-1])))
        kept = [bool(not masks or trained[id]) for id in ids]
        starts = [id in ends for id in ids]
        padding = length - len(ids)
        assert item["input_ids"].tolist() == ids + [0] * padding
        assert item["is_seq_start"].tolist() == starts + [False] * padding
        assert item["lengths"] == len(ids)
        labels = [
            id if keep and not (ignore and start) else -100
            for id, keep, start in zip(ids, kept, starts, strict=True)
        ]
        assert item["labels"].tolist() == labels + [-100] * padding
        inputs = [99 if start else id - 1 for id, start in zip(ids, starts, strict=True)]
        assert other["inputs"].tolist()[: len(ids)] == inputs
        targets = [id if keep else -100 for id, keep in zip(ids, kept, strict=True)]
        assert other["targets"].tolist() == targets + [-100] * padding
        assert np.array_equal(source[number]["input_ids"], item["input_ids"])
    with pytest.raises(IndexError, match="index of a row"):
        source[rows]


@pytest.mark.parametrize("adapter", ["grain", "torch"])
@pytest.mark.parametrize("options", [{}, {"split_across_pack": True}, {"strategy": "best-fit"}], ids=str)
def test_items_are_the_packs(make_dataset: Any, random_sequences: Any, adapter: str, options: Any) -> None:
    train = flat_tokens.open(make_dataset(random_sequences(1, 90), layout=LAYOUTS[0])).train
    packed = PackedSequences(train, 12, 3, restart_positions=True, ignore_first_labels=True, **options)
    source = source_of(adapter, packed, 12, fields=("input_ids", "labels", "position_ids", "segment_ids"))
    numbers = packed.shuffled(3).tolist()
    for number, item in zip(numbers, source.__getitems__(numbers), strict=True):
        pack = packed[number]
        assert item["input_ids"].tolist() == pack.tokens.tolist()
        assert item["labels"].tolist() == pack.labels.tolist()
        assert item["position_ids"].tolist() == pack.input_pos.tolist()
        assert item["segment_ids"].tolist() == pack.segment_ids.tolist()
    with pytest.raises(ArgumentError, match="seq_len.*max_seq_len"):
        source_of(adapter, packed, 7)


@pytest.mark.parametrize("adapter", ["grain", "torch"])
def test_a_batch_of_random_rows_on_a_store_took_a_request_per_row(
    tmp_path: Path, random_sequences: Any, adapter: str
) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    write_dataset(tmp_path / "d", random_sequences(1, 3000), [], ArrayLayout.create(3, 64, 2**14))
    store = CountingStore(copy_dataset(tmp_path / "d", open_store(f"memory://{uuid4().hex}/d.zarr")))
    source = source_of(adapter, flat_tokens.open(store).train, 8)
    source[0]  # reads the shard index
    store.requests.clear()
    numbers = np.random.default_rng(1).integers(0, len(source), 256).tolist()
    assert len(source.__getitems__(numbers)) == 256
    assert store.requests["read"] < 64  # spans of Zarr chunks; a store merges adjacent ranges
