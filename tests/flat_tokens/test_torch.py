"""The PyTorch datasets; skipped without torch: pip install torch, then pytest tests/flat_tokens/test_torch.py."""

from __future__ import annotations

import importlib.util
import itertools
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.errors import ArgumentError
from flat_tokens.loader import Loader
from flat_tokens.storage.layout import ArrayLayout

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # torch's own, of few cores and old names
]


@pytest.fixture
def train(make_dataset: Any, random_sequences: Any) -> Any:
    path = make_dataset(random_sequences(1, 120), layout=ArrayLayout.create(2, 16))
    return flat_tokens.open(path).train


def test_rows(train: Any) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import RowDataset, collate

    dataset = RowDataset(train, 5)
    assert len(dataset) == train.row_count(5)
    batches = list(DataLoader(dataset, 4, collate_fn=collate))
    default = list(DataLoader(dataset, 4))
    for at, (batch, other) in enumerate(zip(batches, default, strict=True)):
        for row in range(len(batch["labels"])):
            inputs, targets = train.inputs_and_targets(4 * at + row, 5)
            assert batch["labels"][row].tolist() == targets.tolist()
            assert batch["input_ids"][row].tolist() == inputs.tolist()
        assert all((batch[name] == other[name]).all() for name in batch)
    with pytest.raises(IndexError, match="outside"):
        dataset[len(dataset)]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_under_workers(train: Any, workers: int, method: str) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    if workers == 0 and method == "spawn":
        method = ""
    dataset = BatchDataset(Loader(train, 5, 4, 2, block_tokens=40), step=2, stop=13)
    context = method if workers else None
    found = list(DataLoader(dataset, None, num_workers=workers, multiprocessing_context=context))
    loader = Loader(train, 5, 4, 2, block_tokens=40)
    assert [batch["labels"].tolist() for batch in found] == [
        loader.batch(step).targets.tolist() for step in range(2, 13)
    ]


def test_state(train: Any) -> None:
    from flat_tokens.torch import BatchDataset

    dataset = BatchDataset(Loader(train, 5, 4, 2))
    batches = iter(dataset)
    for _ in range(3):
        next(batches)
    state = dataset.state_dict()
    assert state["step"] == 3
    other = BatchDataset(Loader(train, 5, 4, 2))
    other.load_state_dict(state)
    assert next(iter(other))["labels"].tolist() == next(batches)["labels"].tolist()
    with pytest.raises(ArgumentError, match="seed 2, this one has 9"):
        BatchDataset(Loader(train, 5, 4, 9)).load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_state_loaded_where_workers_are_started(train: Any, workers: int) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 5, 4, 2)
    dataset = BatchDataset(loader, stop=12)
    next(iter(dataset))  # what was read here before is nothing to the workers
    dataset.load_state_dict({"step": 5, "loader": loader.identity()})
    assert dataset.state_dict()["step"] == 5
    found = [batch["labels"].tolist() for batch in DataLoader(dataset, None, num_workers=workers)]
    assert found == [loader.batch(step).targets.tolist() for step in range(5, 12)]


@pytest.mark.parametrize(("workers", "is_kept"), [(0, False), (2, False), (2, True)])
def test_each_pass_begins_anew(train: Any, workers: int, is_kept: bool) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 5, 4, 2)
    batches = DataLoader(BatchDataset(loader, 3, 9), None, num_workers=workers, persistent_workers=is_kept)
    next(iter(batches))
    for _ in range(2):
        found = [batch["labels"].tolist() for batch in batches]
        assert found == [loader.batch(step).targets.tolist() for step in range(3, 9)]


def test_state_of_other_rows(train: Any) -> None:
    from flat_tokens.torch import BatchDataset

    longest = max(len(sequence) for sequence in train)
    split, truncated = (
        Loader(train, longest, 4, packed=False, long_sequences=choice) for choice in ("split", "truncate")
    )
    assert split.order == truncated.order  # as many rows
    state = BatchDataset(split).state_dict()
    with pytest.raises(ArgumentError, match="row_kind split, padded with 0, this one has truncate"):
        BatchDataset(truncated).load_state_dict(state)


def test_padding_has_no_label(train: Any) -> None:
    from flat_tokens.torch import to_tensors

    batch = Loader(train, 12, 4, packed=False).batch(0)
    labels = to_tensors(batch)["labels"].numpy()
    assert np.array_equal(labels == -100, batch.is_padding)


def test_stateful_dataloader(train: Any) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    from flat_tokens.torch import BatchDataset

    def loader(workers: int) -> Any:
        dataset = BatchDataset(Loader(train, 5, 4, 2), stop=12)
        return stateful.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    for workers, taken in itertools.product((0, 2), (0, 1, 5)):  # of two workers, one or both made none yet
        first = loader(workers)
        batches = iter(first)
        for _ in range(taken):
            next(batches)
        state = first.state_dict()
        rest = [batch["labels"].tolist() for batch in batches]
        again = loader(workers)
        again.load_state_dict(state)
        assert [batch["labels"].tolist() for batch in again] == rest


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("BatchDataset", ["loader"], "loader must be a flat_tokens.Loader, got 'loader'"),
        ("BatchDataset", [None, -1], "step must be at least 0, got -1"),
        ("BatchDataset", [None, "a"], "step must be an integer, got 'a'"),
        ("BatchDataset", [None, 5, 1], "stop must be at least step = 5, got 1"),
        ("RowDataset", [5, 5], "array must be a split such as dataset.train, got 5"),
        ("RowDataset", [None, "a"], "length of a row must be an integer, got 'a'"),
    ],
)
def test_wrong_arguments(name: str, arguments: list[Any], message: str, train: Any) -> None:
    import flat_tokens.torch

    given = Loader(train, 4, 8) if name == "BatchDataset" else train
    with pytest.raises(ArgumentError, match=message):
        getattr(flat_tokens.torch, name)(*(given if value is None else value for value in arguments))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (None, "a state has step and loader"),
        ({}, "a state has step and loader"),
        ({"step": 3, "loader": None}, "a state has step and loader"),
        ({"step": -4}, "step of the state must be at least 0, got -4"),
        ({"step": "x"}, "step of the state must be an integer, got 'x'"),
    ],
)
def test_wrong_states(state: Any, message: str, train: Any) -> None:
    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 4, 8)
    dataset = BatchDataset(loader)
    if state and "loader" not in state:
        state = {**state, "loader": loader.identity()}
    with pytest.raises(ArgumentError, match=message):
        dataset.load_state_dict(state)
    assert dataset.step == 0
