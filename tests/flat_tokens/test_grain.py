"""Sources for grain, tested without grain, and with grain if it is installed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import flat_tokens
from flat_tokens import ArgumentError, Loader, Mixture
from flat_tokens.grain import BatchSource, RowSource


@pytest.fixture
def source(make_dataset: Any, random_sequences: Any) -> RowSource:
    train = flat_tokens.open(make_dataset(random_sequences(1, 60))).train
    return RowSource(train, 5, fields=("inputs", "targets", "is_seq_start"))


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
    for step, batch in enumerate(grain.MapDataset.source(BatchSource(loader, fields=("inputs", "targets")))):
        assert batch["targets"].tolist() == loader.batch(step).targets.tolist()
