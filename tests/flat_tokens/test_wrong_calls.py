"""Wrong calls of every public name raise a one-line error of this package that names the argument."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import ArgumentError, FlatTokensError, Loader, Mixture, PackedSequences, RangeError
from flat_tokens.grain import RowSource

NAN = float("nan")
PAIR = np.array([1, 2])
# Wrong values of arguments, and a valid call with DATASET and TRAIN for the dataset and its split.
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    "Loader": (
        {"array": "TRAIN", "seq_len": 4, "batch_size": 8},
        {
            "array": [None, "train", "DATASET"],
            "seq_len": [0, 1.5, "4", 2**70, NAN],
            "batch_size": [0, 10**6, 10**12, 2.0, "4", [(0, 8)]],
            "seed": [-1, 2**64, None],
            "rank": [0],
            "world_size": [4],
            "streams": [0, 3, "2", 1.0],
            "padding_id": [-1, 10**9],
            "packed": ["yes", None],
            "long_sequences": ["cut", None, PAIR],
            "shuffle": ["no"],
            "block_tokens": [0, 1.5],
            "shuffle_blocks": [0, 1.5],
            "dtype": ["float32", "nothing", 5, "uint8"],
        },
    ),
    "Mixture": (
        {"arrays": ["TRAIN", "TRAIN"], "weights": [1, 1], "seq_len": 4, "batch_size": 8},
        {
            "arrays": [[], "TRAIN", np.array(1)],
            "weights": [
                *([], [1], [1, -1], [1, NAN], ["a", 1], [0, 1], [1, 2, 3], [float("inf"), 1], None, 1),
                *([[1, 2], [3, 4]], "ab", np.array(1), [(0, [0, 0]), (3, [1, 1])], [(0, [1]), (3, [1, 1])]),
                *([(2, [1, 1])], [(0, 5), (3, [1, 1])], [(0, [1, -1]), (3, [1, 1])]),
            ],
            "seq_len": ["a"],
            "batch_size": ["a", 2**63],
            "shuffle_blocks": [0, "a"],
            "seed": [-1],
        },
    ),
    "PackedSequences": (
        {"array": "TRAIN", "max_seq_len": 1000},
        {
            "array": [None, "DATASET"],
            "max_seq_len": [0, "a", 1.5, True, 1, 2**31, 2**40],
            "padding_id": [-1, "a", 2**31],
            "max_packs": [0, "a"],
            "split_across_pack": ["x"],
            "strategy": ["x", None, ["greedy"], PAIR],
            "window_seqs": [5],
            "restart_positions": [2],
            "ignore_first_labels": ["no"],
        },
    ),
    "ArrayLayout": (
        {},
        {
            "zarr_format": [1, 4, "2"],
            "chunk_tokens": [0, "a", NAN, 2**63],
            "shard_tokens": ["a", 0, 2**17, 2**18 + 1],
            "compression": ["x", None, []],
            "level": [23, 99, "a", 1.5, None],
        },
    ),
}
if importlib.util.find_spec("torch") is not None:
    OPTIONS["torch.BatchDataset"] = (
        {"loader": "LOADER"},
        {"loader": ["loader"], "step": [-1, "a"], "stop": [-1, 1.5], "fields": ["labels", ["label"], []]},
    )
    OPTIONS["torch.RowDataset"] = (
        {"array": "TRAIN", "seq_len": 4},
        {"array": [5], "seq_len": ["a"], "fields": [("input_ids", "targets")]},
    )
CALLS = {
    "flat_tokens.open({})": (
        *(
            "None",
            "5",
            "b'x'",
            "'/nowhere/at/all'",
            "d.path / 'manifest.json'",
            "'a\\0b'",
            "'a\\ud800b'",
            "[]",
        ),
        *("'a' * 300", "d.path, tokenizer='missing.json'", "d.path, tokenizer=d.path / 'train'"),
        *("d.path, tokenizer=5", "d.path / 's3:/bucket'"),
    ),
    "flat_tokens.verify_dataset({})": ("None", "d.path / 'manifest.json'", "'a/' + 'é' * 200 + '/b'"),
    "d[{}]": ("'test'", "0", "PAIR", "'\\n\\x1b[31m' * 99"),
    "train.encoded_tokens[{}]": (*("0:3:'\\n'", "0:3:PAIR", "'a'", "1.5", "[1, 2]", "10**9", "::2", "'a':"),),
    "train.encoded_tokens.read({})": ("'a', 2", "5, 2"),
    "train.seq_starts[{}]": ("NAN",),
    "train.sequence({})": ("10**6", "-10**6", "1.0", "'1'", "None", "NAN", "True", "slice(0, 2)"),
    "train.sequences({})": ("[10**6]", "[0.5]", "'ab'", "3", "[[1], [2, 3]]", "[2**70]"),
    "list(train.iter_sequences({}))": ("'a'", "-1", "0, 1.5"),
    "train.row({})": (
        *("0, 0", "0, -4", "0, 2.5", "0, '4'", "0, None", "0, NAN", "0, 2**70", "10**9, 4", "'x', 4"),
        *("np.float64(1), 4",),
    ),
    "train.rows({})": ("[0], '4'", "[0.5], 4", "0, 4"),
    "train.inputs_and_targets({})": ("0, 'a'",),
    "train.row_count({})": ("0", "1.5", "None"),
    "RowSource({})": ("train, 'a'", "None, 4"),
    "RowSource(train, 4, fields={})": (
        *("'labels'", "7", "()", "('labels', 3)", "('labels', 'masks')", "('labels', 'labels')"),
        *("('inputs', 'labels')", "('input_ids', 'targets')"),
    ),
    "RowSource(train, 4)[{}]": ("'a'",),
    "loader.batch({})": ("-1", "1.5", "'1'", "None", "NAN"),
    "loader.rows_of({})": ("-1", "'a'"),
    "loader.state_at({})": ("None",),
    "loader.from_step({})": ("-1", "5, 2", "0, 'b'", "0, prefetch='x'"),
    "Mixture({})": ("[train, 5], [1, 1], 4, 8",),
    "mixture.batch({})": ("-1", "1.5"),
    "mixture.draws({})": ("None", "2**80"),
    "mixture.from_step({})": ("'a'", "0, 1.5", "-1", "3, 2"),
    "PackedSequences(train, {})": (
        *("1000, strategy='best-fit', window_seqs=0", "2**23, strategy='best-fit'", "2, max_packs=9"),
        *("2, strategy='best-fit'",),
    ),
    "packs[{}]": ("10**9", "-10**20", "'a'", "0:2", "1.0", "None"),
    "packs.batch({})": ("5", "['a']"),
    "packs.shuffled({})": ("-1", "0, -1", "2**64"),
    "flat_tokens.ArrayLayout.create({})": ("3, 'a'", "PAIR", "compression='none', level=1", "3, 4, 6"),
    "flat_tokens.views.selected({})": (
        "d, [1]",
        "train, [2, 1]",
        "train, [1, 1]",
        "train, [-1]",
        "train, [40]",
    ),
    "flat_tokens.views.of_sources({})": ("None, 'a'", "train, ''", "train, 3"),
    "flat_tokens.views.concat({})": ("[]", "[d]"),
    "flat_tokens.views.all_trained({})": ("d",),
    "flat_tokens.views.first_of_equals({})": ("d",),
}


@pytest.fixture
def dataset(make_dataset: Any) -> Any:
    generator = np.random.default_rng(3)
    sequences = [generator.integers(0, 500, size).tolist() for size in generator.integers(1, 20, 40)]
    return flat_tokens.open(make_dataset(sequences))


def check_line(error: FlatTokensError) -> None:
    message = str(error)
    assert message == message.strip()
    assert 10 < len(message) < 300
    assert "\n" not in message


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_wrong_options_are_named(name: str, dataset: Any) -> None:
    known = {"DATASET": dataset, "TRAIN": dataset.train, "LOADER": Loader(dataset.train, 4, 8)}

    def given(value: Any) -> Any:
        if isinstance(value, list):
            return [given(each) for each in value]
        return known.get(value, value) if isinstance(value, str) else value

    module, _, kind = name.rpartition(".")
    make = getattr(importlib.import_module(f"flat_tokens.{module}".rstrip(".")), kind)
    valid, wrong = OPTIONS[name]
    make(**{option: given(value) for option, value in valid.items()})
    for option, values in wrong.items():
        for value in values:
            arguments = {key: given(each) for key, each in {**valid, option: value}.items()}
            with pytest.raises(ArgumentError, match=option) as caught:
                make(**arguments)
            check_line(caught.value)


@pytest.mark.promise("errors")
@pytest.mark.parametrize("form", CALLS)
def test_is_reported_in_one_line(form: str, dataset: Any) -> None:
    train = dataset.train
    names = {
        "d": dataset,
        "train": train,
        "loader": Loader(train, 4, 8),
        "packs": PackedSequences(train, 1000),
    }
    names |= {"mixture": Mixture([train], [1], 4, 8), "Mixture": Mixture, "RowSource": RowSource}
    for value in CALLS[form]:
        with pytest.raises(FlatTokensError) as caught:
            eval(form.format(value), globals(), names)
        check_line(caught.value)


def test_iteration_and_membership(dataset: Any) -> None:
    """An index out of range ends iteration, and an unknown split is not a key of the mapping."""
    with pytest.raises(IndexError):
        dataset.train.sequence(40)
    with pytest.raises(KeyError):
        dataset["test"]
    with pytest.raises(ValueError, match="seq_len"):
        Loader(dataset.train, "4", 8)  # type: ignore[arg-type]
    assert issubclass(RangeError, ArgumentError)


@pytest.mark.parametrize("integer", [int, np.int8, np.uint8, np.int64, np.uint64])
def test_whole_numbers_of_any_type(integer: Any, dataset: Any) -> None:
    train = dataset.train
    assert train.sequence(integer(7)).tolist() == train.sequence(7).tolist()
    assert train.row(integer(3), integer(60)).ids.tolist() == train.row(3, 60).ids.tolist()
    assert train.encoded_tokens[integer(9)] == train.encoded_tokens[9]
    loader, same = Loader(train, integer(4), integer(8), seed=integer(5)), Loader(train, 4, 8, seed=5)
    assert np.array_equal(loader.batch(integer(2)).targets, same.batch(2).targets)
    mixture, other = Mixture([train], [integer(1)], integer(4), integer(8)), Mixture([train], [1], 4, 8)
    assert np.array_equal(mixture.batch(integer(2)).targets, other.batch(2).targets)
    packs = PackedSequences(train, integer(50))
    assert packs[integer(1)].tokens.tolist() == PackedSequences(train, 50)[1].tokens.tolist()
