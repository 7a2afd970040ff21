"""Weights that change at given steps: random access to steps, and future weights may change on resume.

States: a run resumes at any step on any number of ranks, and a state of other batches is rejected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import ArgumentError, Loader, Mixture, PackedSequences
from flat_tokens.loading import mixture as mixing
from flat_tokens.storage.layout import ArrayLayout

OPTIONS: dict[str, Any] = {"block_tokens": 40, "shuffle_blocks": 6}


@pytest.fixture
def arrays(make_dataset: Any, random_sequences: Any) -> list[Any]:
    return [
        flat_tokens.open(
            make_dataset(random_sequences(seed, count), layout=ArrayLayout.create(2, 16), name=str(seed))
        ).train
        for seed, count in ((1, 300), (2, 90), (3, 150))
    ]


def make(kind: str, arrays: list[Any], batch_size: int, **ranks: Any) -> Any:
    if kind == "loader":
        return Loader(arrays[0], 4, batch_size, 3, **OPTIONS, **ranks)
    if kind == "packs":
        return Loader(PackedSequences(arrays[0], 12), 12, batch_size, 3, **OPTIONS, **ranks)
    return Mixture(arrays, [1, 2, 5], 4, batch_size, 3, **OPTIONS, **ranks)


# -- weights


def counts_of(mixture: Mixture, steps: range) -> list[int]:
    chosen = np.concatenate([mixture.draws(step)[0] for step in steps])
    return np.bincount(chosen, minlength=len(mixture.members)).tolist()


@pytest.mark.promise("mixtures")
def test_weights_change_at_their_steps(arrays: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixing, "PERIOD", 16)
    weights = [(0, [1, 0, 0]), (10, [0, 1, 3]), (26, [2, 1, 1])]
    mixture = Mixture(arrays, weights, 4, 8, 3, streams=2, **OPTIONS)
    assert counts_of(mixture, range(10)) == [80, 0, 0]
    assert counts_of(mixture, range(10, 26)) == [0, 32, 96]
    assert counts_of(mixture, range(26, 42)) == [64, 32, 32]
    places: dict[tuple[int, int], int] = {}
    for step in range(60):  # every row of each stream once, in order
        drawn = sorted(zip(*(values.tolist() for values in mixture.draws(step)), strict=True))
        for number, stream, place in drawn:
            assert place == places.get((number, stream), -1) + 1
            places[number, stream] = place
    batches = [batch.targets for batch in mixture.from_step(0, 60)]
    for step in (59, 0, 25, 26, 27, 9, 10, 41):
        assert np.array_equal(mixture.batch(step).targets, batches[step])


@pytest.mark.parametrize("step", [1, 5, 9, 10, 11])
def test_a_later_entry_changes_no_earlier_step(arrays: list[Any], step: int) -> None:
    before = Mixture(arrays, [(0, [1, 1, 1]), (10, [1, 2, 3])], 4, 8, 3, **OPTIONS)
    entries = [(0, [1, 1, 1]), (10, [1, 2, 3])][: 1 + (step > 10)]
    after = Mixture(arrays, [*entries, (step, [3, 1, 1])], 4, 8, 3, **OPTIONS)
    for at in range(step):
        assert np.array_equal(before.batch(at).targets, after.batch(at).targets)
    assert after.step_of(before.state_at(step)) == step  # later entries may differ
    with pytest.raises(ArgumentError):
        after.step_of(before.state_at(step + 11))


# -- states


@pytest.mark.parametrize("kind", ["loader", "packs", "mixture"])
@pytest.mark.parametrize("given", [{"rank": 0}, {"rank": 3}, {"world_size": 4}])
def test_world_size_without_rank_was_rank_0_on_every_rank(
    arrays: list[Any], kind: str, given: dict[str, int]
) -> None:
    with pytest.raises(ArgumentError):
        make(kind, arrays, 16, **given)
    with pytest.raises(ArgumentError, match=r"rank.*\[0.*world_size"):
        make(kind, arrays, 16, rank=4, world_size=4)


@pytest.mark.promise("states")
@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"seed": 4}, "seed"),
        ({"batch_size": 8}, "batch_size"),
        ({"seq_len": 5}, "seq_len"),
        ({"array": 1}, "token_count"),
        ({"array": "packs"}, "seq_len"),
        ({"drop_last": False}, "row_kind"),
        ({"shuffle": False}, "shuffle"),
    ],
)
def test_states_that_do_not_belong(arrays: list[Any], changes: dict[str, Any], name: str) -> None:
    state = make("loader", arrays, 16).state_at(5)
    given: dict[str, Any] = {
        "array": arrays[0],
        "seq_len": 4,
        "batch_size": 16,
        "seed": 3,
        **OPTIONS,
        **changes,
    }
    if given["array"] == "packs":
        given |= {"array": PackedSequences(arrays[0], 12), "seq_len": 12}
    elif isinstance(given["array"], int):
        given["array"] = arrays[given["array"]]
    loader = Loader(**given)
    with pytest.raises(ArgumentError, match=f"^state: {name} ") as error:
        loader.step_of(state)
    assert "\n" not in str(error.value)


@pytest.mark.promise("states")
def test_the_same_counts_and_other_tokens(make_dataset: Any) -> None:
    one, other = (
        flat_tokens.open(make_dataset([[first, 2, 3]] * 8, name=str(first))).train for first in (1, 3)
    )
    with pytest.raises(ArgumentError):
        Loader(other, 3, 2).step_of(Loader(one, 3, 2).state_at(0))
    state = Loader(one, 3, 2).state_at(0)
    state["loader"]["order_version"] = 0
    with pytest.raises(ArgumentError, match="order_version"):
        Loader(one, 3, 2).step_of(state)


@pytest.mark.parametrize(("batch_size", "shuffle_blocks"), [(16, 64), (12, 4)])
def test_later_weights_changed_earlier_windows(
    arrays: list[Any], batch_size: int, shuffle_blocks: int
) -> None:
    """Later entries of a schedule changed the windows and the number of streams. The order of earlier steps changed
    too, and a valid state was rejected.
    """

    def mixture(weights: list[Any]) -> Mixture:
        return Mixture(arrays[:2], weights, 4, batch_size, 3, block_tokens=16, shuffle_blocks=shuffle_blocks)

    given = mixture([(0, [1, 0]), (2, [1, 1]), (4, [1, 3])])
    for step, weights in (
        (4, [(0, [1, 0]), (2, [1, 1]), (4, [0, 1])]),
        (4, [(0, [1, 0]), (2, [1, 1])]),
        (2, [(0, [1, 0]), (2, [1, 50])]),
        (2, [(0, [1, 0]), (9, [1, 0])]),
    ):
        other = mixture(weights)
        assert other.step_of(given.state_at(step)) == step
        for before in range(step):
            assert np.array_equal(other.batch(before).targets, given.batch(before).targets)
    with pytest.raises(ArgumentError, match="weights"):
        mixture([(0, [1, 0]), (2, [1, 50])]).step_of(given.state_at(3))


def test_a_state_of_a_mixture(arrays: list[Any]) -> None:
    state = make("mixture", arrays, 16).state_at(5)
    with pytest.raises(ArgumentError):
        Mixture(arrays, [1, 2, 6], 4, 16, 3, **OPTIONS).step_of(state)
    with pytest.raises(ArgumentError, match=r"datasets\[1\]\.token_count"):
        Mixture([arrays[0], arrays[2], arrays[2]], [1, 2, 5], 4, 16, 3, **OPTIONS).step_of(state)
    with pytest.raises(ArgumentError):
        make("loader", arrays, 16).step_of(state)


@pytest.mark.long
def test_a_schedule_of_thousands_of_entries_exceeded_the_recursion_limit(arrays: list[Any]) -> None:
    entries = [(step, [1, 1 + step % 3, 2]) for step in range(1100)]
    mixture = Mixture(arrays, entries, 4, 8, 3, streams=1, **OPTIONS)
    counts = sum(np.bincount(mixture.draws(step)[0], minlength=3) for step in range(1099))
    last, _, places = mixture.draws(1099)
    for number in range(3):
        drawn = places[last == number]
        assert drawn.tolist() == list(range(counts[number], counts[number] + len(drawn)))
    assert np.array_equal(Mixture(arrays, entries, 4, 8, 3, streams=1, **OPTIONS).draws(1099)[2], places)
