"""Mixtures: shares by weight, rows equal to the datasets' rows, the same for any number of hosts and any start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.errors import ArgumentError
from flat_tokens.loading.loader import Loader
from flat_tokens.loading.mixture import PERIOD, Mixture
from flat_tokens.storage.layout import ArrayLayout

OPTIONS: dict[str, Any] = {"block_tokens": 40, "shuffle_blocks": 6}


@pytest.fixture
def arrays(make_dataset: Any) -> list[Any]:
    """Return three datasets with distinct IDs: dataset i has IDs 100 * i + 1 and above."""
    found = []
    for number, count in enumerate((40, 90, 300)):
        sequences = [[100 * number + 1 + i % 50] * (i % 7 + 1) for i in range(count)]
        path = make_dataset(sequences, layout=ArrayLayout.create(2, 16), name=str(number))
        found.append(flat_tokens.open(path).train)
    return found


@pytest.mark.promise("mixtures")
def test_shares_are_exact_over_a_span(arrays: list[Any]) -> None:
    mixture = Mixture(arrays, [1, 2, 5], 4, 8, streams=1, **OPTIONS)
    chosen = np.concatenate([mixture.draws(step)[0] for step in range(PERIOD // 8)])
    assert np.bincount(chosen).tolist() == [512, 1024, 2560]


@pytest.mark.promise("mixtures")
@pytest.mark.parametrize("weights", [[1e-5, 1], [1, 1, 1], [0.7, 0.2, 0.1], [1e-5, 1e-4, 1]])
def test_a_weight_of_any_size_is_met(arrays: list[Any], weights: list[float]) -> None:
    """Count each stream after whole periods; 1e-5 was raised to 1/4096. A step is a period of each stream."""
    mixture = Mixture(arrays[: len(weights)], weights, 4, 8 * PERIOD, streams=8)
    counts = np.zeros((8, len(weights)), dtype=np.int64)
    for step in range(60):
        members, streams, draws = mixture.draws(step)
        for stream in range(8):
            for member, first in enumerate(counts[stream].tolist()):
                found = draws[(streams == stream) & (members == member)]
                assert found.tolist() == list(range(first, first + len(found)))  # each row of the stream once
                counts[stream, member] += len(found)
        exact = (step + 1) * PERIOD * np.array(weights) / sum(weights)
        assert (np.abs(counts - exact) < (1 if len(weights) == 2 else 4)).all()
    if len(weights) == 2:  # streams round at different times
        assert np.abs(counts.sum(axis=0) - 8 * exact).max() <= 0.5
        assert counts[:, 0].sum() == round(8 * 60 * PERIOD * 1e-5 / 1.00001)


def test_the_first_dataset_had_to_fill_a_batch(make_dataset: Any) -> None:
    """The order of the datasets decided whether the mixture was accepted. Small datasets now mean fewer streams."""
    small = flat_tokens.open(make_dataset([[1, 2, 3, 4]] * 9, name="s")).train
    large = flat_tokens.open(make_dataset([[5, 6, 7, 8]] * 99, name="l")).train
    for arrays, number in (([small, large], 0), ([large, small], 1)):
        mixture = Mixture(arrays, [1, 1], 4, 64, seed=1)
        chosen, _, _ = mixture.draws(0)
        assert np.array_equal(chosen == number, mixture.batch(0).targets[:, 0] == 1)
        with pytest.raises(ArgumentError, match=rf"arrays\[{number}\]: .*16 \(got 9\)"):
            Mixture(arrays, [1, 1], 4, 64, streams=16)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("streams", [None, 4])
def test_unshuffled_datasets_were_read_past_their_ends(
    make_dataset: Any, packed: bool, streams: int | None
) -> None:
    train = flat_tokens.open(make_dataset([[id] for id in range(40)], layout=ArrayLayout.create(2, 16))).train
    mixture = Mixture([train], [1], 1, 8, shuffle=False, packed=packed, streams=streams)
    for found in (mixture.from_step(0, 7), map(mixture.batch, range(7))):
        ids = np.concatenate([batch.targets[:, 0] for batch in found])
        assert ids.tolist() == [*range(40), *range(16)]


def test_unshuffled_datasets_were_held_in_the_memory_of_a_shuffle(make_dataset: Any) -> None:
    train = flat_tokens.open(make_dataset([[1] * 1000] * 2500)).train
    alone = Loader(train, 1000, 8, shuffle=False).identity()
    for weights in ([1], [1, 1]):
        mixture = Mixture([train] * len(weights), weights, 1000, 8, shuffle=False).identity()
        held = sum(mixture[f"datasets[{number}].window_blocks"] for number in range(len(weights)))
        assert held == alone["window_blocks"]
