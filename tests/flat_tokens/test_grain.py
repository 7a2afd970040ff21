"""The source for grain: what grain asks for, without grain; and with it, where it is installed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.grain import RowSource


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
    with pytest.raises(IndexError, match="outside"):
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
