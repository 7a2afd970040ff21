"""The source for grain: what grain asks for, without grain; and with it, where it is installed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import ArgumentError, Loader, Mixture, PackedSequences
from flat_tokens.grain import BatchSource, RowSource


@pytest.fixture
def source(make_dataset: Any, random_sequences: Any) -> RowSource:
    return RowSource(flat_tokens.open(make_dataset(random_sequences(1, 60))).train, 5)


def test_items(source: RowSource) -> None:
    assert len(source) == source.array.row_count(5)
    for index in range(-len(source), len(source)):
        inputs, targets = source.array.inputs_and_targets(index, 5)
        item = source[index]
        assert (item["inputs"].tolist(), item["targets"].tolist()) == (inputs.tolist(), targets.tolist())
        assert item["is_seq_start"].tolist() == source.array.row(index, 5).is_start.tolist()
        assert item["inputs"].dtype == item["targets"].dtype == np.int32
        assert list(item) == ["inputs", "targets", "is_seq_start"]
    with pytest.raises(IndexError, match="index of a"):
        source[len(source)]


@pytest.mark.parametrize("ignore", [True, False])
def test_unshifted_items(ignore: bool, source: RowSource) -> None:
    fields = ("input_ids", "labels", "position_ids")
    other = RowSource(source.array, 5, fields=fields, ignore_first_labels=ignore)
    for index in range(len(source)):
        ids, flags = source[index]["targets"], source[index]["is_seq_start"]
        item = other[index]
        assert tuple(item) == fields
        assert item["input_ids"].tolist() == ids.tolist()
        assert item["labels"].tolist() == np.where(flags & ignore, -100, ids).tolist()
        assert item["labels"].dtype == item["position_ids"].dtype == np.int32


def test_packs_and_the_tail(source: RowSource) -> None:
    packed = PackedSequences(source.array, 12)
    packs = RowSource(packed, 12, fields=("input_ids", "segment_ids"), drop_last=False)
    assert len(packs) == len(packed)
    assert packs[3]["input_ids"].tolist() == packed[3].tokens.tolist()
    assert packs[3]["segment_ids"].tolist() == packed[3].segment_ids.tolist()
    assert "max_seq_len=12" in repr(packs)
    rest = source.array.token_count % 7
    assert rest
    rows = RowSource(source.array, 7, fields=("targets", "lengths"), drop_last=False)
    assert rows[-1]["lengths"] == rest
    assert (rows[-1]["targets"] != -100).sum() == rest
    assert len(rows) == source.array.row_count(7) + 1
    marked = RowSource(source.array, 7, start_id=99)
    assert marked[0]["inputs"][0] == 99
    with pytest.raises(ArgumentError, match="seq_len.*max_seq_len"):
        RowSource(packed, 7)


def test_batches_as_items(source: RowSource) -> None:
    loader = Loader(source.array, 5, 4, 2)
    batches = BatchSource(loader, fields=("input_ids", "labels", "cu_seqlens", "max_seqlen"))
    assert len(batches) == len(loader)
    for step in (0, len(loader) - 1, -1):
        expected = loader.batch(step % len(loader))
        assert batches[step]["input_ids"].tolist() == expected.targets.tolist()
        assert batches[step]["cu_seqlens"].tolist() == expected.cu_seqlens.tolist()
    with pytest.raises(IndexError, match="index of a"):
        batches[len(loader)]
    assert repr(batches) == repr(BatchSource(Loader(source.array, 5, 4, 2)))
    assert repr(batches) != repr(BatchSource(Loader(source.array, 5, 4, 3)))
    mixture = Mixture([source.array], [1], 5, 4)
    with pytest.raises(ArgumentError, match="steps"):
        BatchSource(mixture)
    assert len(BatchSource(mixture, 7)) == 7
    with pytest.raises(ArgumentError, match="loader: "):
        BatchSource(5)  # type: ignore[arg-type]


def test_the_repr_is_stable(source: RowSource) -> None:
    assert repr(pickle.loads(pickle.dumps(source))) == repr(source)
    assert repr(source).startswith("flat_tokens.RowSource(train, tokens=")
    assert "0x" not in repr(source)


@pytest.mark.filterwarnings("ignore")
def test_under_grain(source: RowSource) -> None:
    grain = pytest.importorskip("grain")
    batches = list(grain.MapDataset.source(source).shuffle(seed=1).batch(4))
    assert batches[0]["targets"].shape == (4, 5)
    assert sum(len(batch["targets"]) for batch in batches) == len(source)
    loader = Loader(source.array, 5, 4, 2)
    for step, batch in enumerate(grain.MapDataset.source(BatchSource(loader))):
        assert batch["targets"].tolist() == loader.batch(step).targets.tolist()
