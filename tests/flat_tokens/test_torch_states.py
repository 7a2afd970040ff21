"""States of BatchDataset: passes resume with any number of workers, and states of other batches are rejected."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from batch_sources import sources

import flat_tokens
from flat_tokens.errors import ArgumentError
from flat_tokens.loading.loader import Loader
from flat_tokens.storage.layout import ArrayLayout

pytest.importorskip("torch")
from torch.utils.data import DataLoader

from flat_tokens.torch import BatchDataset

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # torch warns about few cores and old names
]


@pytest.fixture
def train(make_dataset: Any, random_sequences: Any) -> Any:
    path = make_dataset(random_sequences(1, 120), layout=ArrayLayout.create(2, 16))
    return flat_tokens.open(path).train


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_loaded_state_moves_the_begin_of_the_next_pass(train: Any, workers: int) -> None:
    """Also with workers of later passes: their copies of the dataset do not know the state."""
    loader = Loader(train, 5, 4, 2)
    dataset = BatchDataset(loader, 3, 12)
    next(iter(dataset))
    for firsts in ((3, 3), (5, 5 if workers else 3)):
        if firsts[0] == 5:
            dataset.load_state_dict({"step": 5, "loader": loader.identity()})
            assert dataset.state_dict()["step"] == 5
        for first in firsts:
            assert len(dataset) == 12 - first
            found = [batch["input_ids"].tolist() for batch in DataLoader(dataset, None, num_workers=workers)]
            assert found == [loader.batch(step).targets.tolist() for step in range(first, 12)]


def test_persistent_workers_ignored_a_loaded_state(train: Any) -> None:
    dataset = BatchDataset(Loader(train, 5, 4, 2), 3, 12)
    data = DataLoader(dataset, None, num_workers=1, persistent_workers=True)
    assert len(list(data)) == 9
    dataset.load_state_dict({"step": 5, "loader": dataset.loader.identity()})
    with pytest.raises(ArgumentError, match="persistent workers"):
        next(iter(data))


@pytest.mark.slow
def test_the_length_of_a_pass(train: Any) -> None:
    loader, padded = Loader(train, 5, 4, 2), Loader(train, 5, 4, 2, drop_last=False)
    assert len(BatchDataset(loader, 3, 12)) == 9
    assert len(BatchDataset(padded, len(padded) + 2)) == len(padded) - 2
    with pytest.raises(TypeError, match="stop="):
        len(BatchDataset(loader))


@pytest.mark.parametrize("workers", [None, 0, 2])
def test_two_passes_at_once_have_the_same_batches(train: Any, workers: int | None) -> None:
    """The second pass started after the first one's first batch, and silently skipped the others."""
    dataset = BatchDataset(Loader(train, 5, 4, 2), 3, 9)
    batches: Any = dataset if workers is None else DataLoader(dataset, None, num_workers=workers)
    found = [[batch["input_ids"].tolist() for batch in both] for both in zip(batches, batches, strict=True)]
    assert found == [[dataset.loader.batch(step).targets.tolist()] * 2 for step in range(3, 9)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_after_the_first_epoch_had_no_batches(train: Any, workers: int) -> None:
    """With drop_last=False the pass was empty."""
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    loader = Loader(train, 12, 16, 2, drop_last=False)
    steps = len(loader)
    want = [loader.batch(step).ids.tolist() for step in range(2 * steps)]

    def run(batches: Any) -> list[Any]:
        return [batch["input_ids"].tolist() for batch in batches]

    for step, first in ((steps + 2, steps + 2), (steps, steps), (steps - 1, steps - 1)):
        dataset = BatchDataset(loader)
        dataset.load_state_dict(loader.state_at(step))
        batches = DataLoader(dataset, None, num_workers=workers)
        assert run(batches) == want[first : steps if step < steps else 2 * steps]
    for taken in (0, 1, steps - 1, steps):  # batches taken from a pass over the second epoch
        second = stateful.StatefulDataLoader(
            BatchDataset(loader, steps), batch_size=None, num_workers=workers
        )
        for _ in itertools.islice(iter(second), taken):
            pass
        again = stateful.StatefulDataLoader(BatchDataset(loader), batch_size=None, num_workers=workers)
        again.load_state_dict(second.state_dict())
        assert run(again) == want[steps + taken : 2 * steps] or taken == steps
    dataset = BatchDataset(loader, stop=steps + 3)
    dataset.load_state_dict(loader.state_at(steps + 1))
    assert run(dataset) == want[steps + 1 : steps + 3]


def test_passes_after_a_resumed_one_began_at_its_end(train: Any) -> None:
    loader = Loader(train, 12, 16, 2, drop_last=False)
    steps = len(loader)
    for taken in (3, steps):
        dataset = BatchDataset(loader)
        state = BatchDataset(loader).state_dict()
        dataset.load_state_dict(loader.state_at(taken) | {"stop": state["stop"]})
        lengths = [len(dataset), *(len(list(dataset)) for _ in range(3))]
        assert lengths == [steps - taken, steps - taken, steps, steps]


@pytest.mark.promise("states")
@pytest.mark.parametrize("kind", ["packs", "mixture"])
@pytest.mark.parametrize("workers", [0, 2])
def test_states_of_every_source(train: Any, kind: str, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def loader() -> Any:
        dataset = BatchDataset(sources(train)[kind], stop=9)
        return stateful.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    first = loader()
    batches = iter(first)
    for _ in range(4):
        next(batches)
    again = loader()
    again.load_state_dict(first.state_dict())
    assert [batch["labels"].tolist() for batch in again] == [batch["labels"].tolist() for batch in batches]
    with pytest.raises(ArgumentError):
        BatchDataset(sources(train)["loader"]).load_state_dict(
            BatchDataset(sources(train)[kind], 5).state_dict()
        )


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_state_of_a_dataset_in_workers_is_refused(train: Any, method: str) -> None:
    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=12)
    assert dataset.state_dict()["step"] == 0
    batches = iter(DataLoader(dataset, None, num_workers=2, multiprocessing_context=method))
    for _ in range(3):
        next(batches)
    with pytest.raises(ArgumentError) as error:
        dataset.state_dict()
    assert "\n" not in str(error.value)
    del batches
    next(iter(dataset))  # a pass in this process
    assert dataset.state_dict()["step"] == 1


@pytest.mark.parametrize(
    ("state", "where"),
    [
        (None, "state: "),
        ({}, "state: "),
        ({"step": 3, "loader": None}, "state: "),
        ({"step": -4}, "state: step: "),
        ({"step": "x"}, "state: step: "),
        ({"step": 3, "stop": "x"}, "state: stop: "),
    ],
)
def test_wrong_states(state: Any, where: str, train: Any) -> None:
    loader = Loader(train, 4, 8)
    dataset = BatchDataset(loader)
    if state and "loader" not in state:
        state = {**state, "loader": loader.identity()}
    with pytest.raises(ArgumentError, match=f"^{where}"):
        dataset.load_state_dict(state)
    assert dataset.step == 0
