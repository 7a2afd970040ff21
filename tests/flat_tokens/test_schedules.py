"""Batch sizes and weights that change at given steps: any step at once, parts for hosts, and a future that may be
changed where a run is resumed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import ArgumentError, Loader, Mixture, PackedSequences
from flat_tokens.loading import mixing
from flat_tokens.rows.schedule import BatchSizes, entries_of
from flat_tokens.storage.layout import ArrayLayout

RAMP = [(0, 16), (3, 32), (5, 48), (9, 16)]
OPTIONS: dict[str, Any] = {"block_tokens": 40, "shuffle_blocks": 6}


@pytest.fixture
def arrays(make_dataset: Any, random_sequences: Any) -> list[Any]:
    return [
        flat_tokens.open(
            make_dataset(random_sequences(seed, count), layout=ArrayLayout.create(2, 16), name=str(seed))
        ).train
        for seed, count in ((1, 300), (2, 90), (3, 150))
    ]


@pytest.mark.parametrize("entries", [16, RAMP, [(0, 4), (2, 6)], [(0, 1), (1, 2), (2, 3)]])
def test_units_follow_one_another(entries: Any) -> None:
    sizes = BatchSizes(entries)
    at = 0
    for step in range(20):
        first, stop = sizes.units(step)
        assert first == at
        assert (stop - first) * sizes.unit == sizes.size(step)
        expected = (
            entries if isinstance(entries, int) else [size for first, size in entries if first <= step][-1]
        )
        assert sizes.size(step) == expected
        at = stop


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([(1, 4)], r"the steps of batch_size must rise from 0, got \[1\]"),
        ([(0, 4), (5, 8), (5, 9)], r"must rise from 0, got \[0, 5, 5\]"),
        ([(0, 4), ("a", 8)], "first step of batch_size must be an integer, got 'a'"),
        ([(0, 4), (3, 0)], "batch_size must be at least 1, got 0"),
        ([], r"batch_size must be an integer, got \[\]"),
        ([4, 8], r"batch_size must be an integer, got \[4, 8\]"),
    ],
)
def test_wrong_ramps(value: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        BatchSizes(value)


def make(kind: str, arrays: list[Any], batch_size: Any, **hosts: Any) -> Any:
    if kind == "loader":
        return Loader(arrays[0], 4, batch_size, 3, **OPTIONS, **hosts)
    if kind == "packs":
        return Loader(PackedSequences(arrays[0], 12), 12, batch_size, 3, **OPTIONS, **hosts)
    return Mixture(arrays, [1, 2, 5], 4, batch_size, 3, **OPTIONS, **hosts)


@pytest.mark.parametrize("kind", ["loader", "packs", "mixture"])
def test_a_ramp_is_made_of_units(arrays: list[Any], kind: str) -> None:
    ramp, units = make(kind, arrays, RAMP), make(kind, arrays, 16)
    at = 0
    in_a_row = ramp.from_step(0, 12)
    for step in range(12):
        count = dict(RAMP)[max(first for first, _ in RAMP if first <= step)] // 16
        batch, other = ramp.batch(step), next(in_a_row)
        expected = [units.batch(at + i) for i in range(count)]
        assert len(batch) == 16 * count
        for i, unit in enumerate(expected):
            for name in ("inputs", "targets", "is_seq_start", "is_padding", "positions"):
                assert np.array_equal(getattr(batch, name)[i::count], getattr(unit, name))
                assert np.array_equal(getattr(other, name)[i::count], getattr(unit, name))
        at += count
    assert next(in_a_row, None) is None


@pytest.mark.parametrize("kind", ["loader", "packs", "mixture"])
@pytest.mark.parametrize("hosts", [1, 2, 4, 8, 16])
def test_hosts_hold_parts_of_a_ramp(arrays: list[Any], kind: str, hosts: int) -> None:
    whole = make(kind, arrays, RAMP)
    parts = [make(kind, arrays, RAMP, rank=rank, world_size=hosts) for rank in range(hosts)]
    for step in (0, 4, 7, 11):
        together = np.concatenate([part.batch(step).inputs for part in parts])
        assert np.array_equal(together, whole.batch(step).inputs)


def test_hosts_that_do_not_divide_a_ramp(arrays: list[Any]) -> None:
    with pytest.raises(
        ArgumentError, match="3 hosts do not divide each batch_size of the ramp; they must divide 16$"
    ):
        make("loader", arrays, RAMP, rank=0, world_size=3)
    with pytest.raises(ArgumentError, match="a ramp of batch sizes has no steps an epoch"):
        len(make("loader", arrays, RAMP))


# -- weights


def counts_of(mixture: Mixture, steps: range) -> list[int]:
    chosen = np.concatenate([mixture.draws(step)[0] for step in steps])
    return np.bincount(chosen, minlength=len(mixture.members)).tolist()


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
def test_an_entry_behind_a_step_changes_nothing_before_it(arrays: list[Any], step: int) -> None:
    before = Mixture(arrays, [(0, [1, 1, 1]), (10, [1, 2, 3])], 4, 8, 3, **OPTIONS)
    entries = [(0, [1, 1, 1]), (10, [1, 2, 3])][: 1 + (step > 10)]
    after = Mixture(arrays, [*entries, (step, [3, 1, 1])], 4, 8, 3, **OPTIONS)
    for at in range(step):
        assert np.array_equal(before.batch(at).targets, after.batch(at).targets)
    after.load_state_dict(before.state_at(step))  # what comes later may be another thing
    assert np.array_equal(next(iter(after)).targets, after.batch(step).targets)
    with pytest.raises(ArgumentError, match="the state is of a loader with weights "):
        after.load_state_dict(before.state_at(step + 11))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([(0, [0, 0, 0]), (3, [1, 1, 1])], "one of the weights must be above 0"),
        ([(0, [1, 1]), (3, [1, 1, 1])], "a weight for each array, got 2 for 3"),
        ([(0, [1, -1, 1]), (3, [1, 1, 1])], "weights must be positive numbers"),
        ([(2, [1, 1, 1])], "the steps of weights must rise from 0"),
        ([(0, 5), (3, [1, 1, 1])], "weights must be a list, got 5"),
    ],
)
def test_wrong_weights(arrays: list[Any], weights: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Mixture(arrays, weights, 4, 8)


def test_entries() -> None:
    assert entries_of("x", 5) == [(0, 5)]
    assert entries_of("x", [1, 2]) == [(0, [1, 2])]
    assert entries_of("x", [(0, 1), (4, 2)]) == [(0, 1), (4, 2)]


# -- states


@pytest.mark.parametrize("kind", ["loader", "packs", "mixture"])
@pytest.mark.parametrize("batch_size", [16, RAMP])
def test_resumed_at_every_step_on_other_hosts(arrays: list[Any], kind: str, batch_size: Any) -> None:
    steps = 13
    running = make(kind, arrays, batch_size)
    expected = [batch.inputs for batch in running.from_step(0, steps)]
    for step, hosts in zip(range(steps), itertools.cycle((1, 2, 4, 8, 16)), strict=False):
        source = make(kind, arrays, batch_size)
        for _ in source.from_step(0, step):
            pass
        parts = [make(kind, arrays, batch_size, rank=rank, world_size=hosts) for rank in range(hosts)]
        for part in parts:
            part.load_state_dict(source.state_dict())
            assert part.state_dict()["step"] == step
        together = np.concatenate([next(iter(part)).inputs for part in parts])
        assert np.array_equal(together, expected[step])


def test_a_resumed_pass_ends_with_its_epoch(arrays: list[Any]) -> None:
    loader = make("loader", arrays, 16)
    steps = len(loader)
    loader.load_state_dict(loader.state_at(steps + 3))
    assert len(list(loader)) == steps - 3
    assert loader.state_dict()["step"] == 2 * steps
    assert len(list(loader)) == steps  # the next pass is the first epoch again
    loader.load_state_dict(loader.state_at(steps))
    assert len(list(loader)) == steps


def test_a_pass_that_has_no_batch_yet_is_where_it_begins(arrays: list[Any]) -> None:
    """Its state was that of the pass before, or of none: a training that was saved there lost its place."""
    loader = make("loader", arrays, 16)
    loader.load_state_dict(loader.state_at(3))
    begun = iter(loader)
    assert loader.state_dict()["step"] == 3
    next(begun)
    assert loader.state_dict()["step"] == 4
    iter(loader)
    assert loader.state_dict()["step"] == 0


def test_a_ramp_may_change_behind_the_step(arrays: list[Any]) -> None:
    state = make("loader", arrays, RAMP).state_at(4)
    for ramp in ([(0, 16), (3, 32), (4, 16)], [(0, 16), (3, 32)], [*RAMP, (20, 64)]):
        other = make("loader", arrays, ramp)
        assert other.step_of(state) == 4
        assert other.sizes.units(4)[0] == make("loader", arrays, RAMP).sizes.units(4)[0]
    with pytest.raises(ArgumentError, match=r"with batch_sizes \[\[0, 16\], \[3, 32\]\], this one has None"):
        make("loader", arrays, 16).step_of(state)
    assert make("loader", arrays, RAMP).step_of(make("loader", arrays, 16).state_at(3)) == 3
    with pytest.raises(ArgumentError, match="batch_size 16, this one has 8"):
        make("loader", arrays, [(0, 16), (3, 32), (9, 8)]).step_of(state)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4}, "seed 3, this one has 4"),
        ({"batch_size": 8}, "batch_size 16, this one has 8"),
        ({"seq_len": 5}, "seq_len 4, this one has 5"),
        ({"array": 1}, "token_count"),
        ({"array": "packs"}, "seq_len 4, this one has 12"),
        ({"drop_last": False}, "row_kind packed, this one has packed, the tail padded with 0"),
        ({"shuffle": False}, "shuffle True, this one has False"),
    ],
)
def test_states_that_do_not_belong(arrays: list[Any], changes: dict[str, Any], message: str) -> None:
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
    with pytest.raises(ArgumentError, match=f"the state is of a loader with .*{message}") as error:
        loader.load_state_dict(state)
    assert "\n" not in str(error.value)
    assert loader.state_dict()["step"] == 0


def test_the_same_counts_and_other_tokens(make_dataset: Any) -> None:
    one, other = (
        flat_tokens.open(make_dataset([[first, 2, 3]] * 8, name=str(first))).train for first in (1, 3)
    )
    with pytest.raises(ArgumentError, match=r"with fingerprint \d+, this one has \d+"):
        Loader(other, 3, 2).load_state_dict(Loader(one, 3, 2).state_dict())
    state = Loader(one, 3, 2).state_dict()
    del state["loader"]["fingerprint"], state["loader"]["order_version"]  # as an earlier version gave it
    Loader(one, 3, 2).load_state_dict(state)
    state["loader"]["order_version"] = 0
    with pytest.raises(ArgumentError, match="order_version 0, this one has 1"):
        Loader(one, 3, 2).load_state_dict(state)


def test_weights_behind_the_step_decided_on_windows(arrays: list[Any]) -> None:
    """The largest weight of the whole schedule did, so the order of steps before it changed with a later entry, and a
    state was refused that the pages say is taken."""

    def mixture(weights: list[Any]) -> Mixture:
        return Mixture(arrays[:2], weights, 4, 16, 3, block_tokens=16, shuffle_blocks=64)

    given = mixture([(0, [1, 0]), (2, [1, 1]), (4, [1, 3])])
    for step, weights in (
        (4, [(0, [1, 0]), (2, [1, 1]), (4, [0, 1])]),
        (4, [(0, [1, 0]), (2, [1, 1])]),
        (2, [(0, [1, 0]), (2, [1, 50])]),
        (2, [(0, [1, 0]), (9, [1, 0])]),
    ):
        other = mixture(weights)
        other.load_state_dict(given.state_at(step))
        for before in range(step):
            assert np.array_equal(other.batch(before).targets, given.batch(before).targets)
    with pytest.raises(ArgumentError, match="weights"):
        mixture([(0, [1, 0]), (2, [1, 50])]).load_state_dict(given.state_at(3))


def test_a_state_of_a_mixture(arrays: list[Any]) -> None:
    state = make("mixture", arrays, 16).state_at(5)
    with pytest.raises(ArgumentError, match=r"weights .*, this one has"):
        Mixture(arrays, [1, 2, 6], 4, 16, 3, **OPTIONS).load_state_dict(state)
    with pytest.raises(ArgumentError, match=r"datasets\[1\]\.token_count"):
        Mixture([arrays[0], arrays[2], arrays[2]], [1, 2, 5], 4, 16, 3, **OPTIONS).load_state_dict(state)
    with pytest.raises(ArgumentError, match=r"split None, this one has"):
        make("loader", arrays, 16).load_state_dict(state)
