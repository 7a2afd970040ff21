"""Wrong calls of every public name raise a one-line error of this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import (
    ArgumentError,
    ArrayLayout,
    FlatTokensError,
    Loader,
    Mixture,
    PackedSequences,
    RangeError,
    verify_dataset,
    views,
)
from flat_tokens.grain import RowSource

NAN = float("nan")
Call = Callable[[Any], Any]

OPEN: dict[str, Call] = {
    "no path": lambda d: flat_tokens.open(None),  # type: ignore[arg-type]
    "a number": lambda d: flat_tokens.open(5),  # type: ignore[arg-type]
    "bytes": lambda d: flat_tokens.open(b"x"),  # type: ignore[arg-type]
    "not there": lambda d: flat_tokens.open("/nowhere/at/all"),
    "a file": lambda d: flat_tokens.open(d.path / "manifest.json"),
    "NUL in the path": lambda d: flat_tokens.open("a\0b"),
    "a surrogate in the path": lambda d: flat_tokens.open("a\ud800b"),
    "a name that no file can have": lambda d: flat_tokens.open("a" * 300),
    "verify a name that no file can have": lambda d: verify_dataset(f"a/{'é' * 200}/b"),
    "tokenizer not there": lambda d: flat_tokens.open(d.path, tokenizer="missing.json"),
    "tokenizer an empty folder": lambda d: flat_tokens.open(d.path, tokenizer=d.path / "train"),
    "tokenizer a number": lambda d: flat_tokens.open(d.path, tokenizer=5),  # type: ignore[arg-type]
    "split of another name": lambda d: d["test"],
    "split by number": lambda d: d[0],
    "split by an array": lambda d: d[np.array([1, 2])],
    "split of a long name": lambda d: d["\n\x1b[31m" * 99],
    "slice by a text": lambda d: d.train.encoded_tokens[0:3:"\n"],  # type: ignore[misc]
    "slice by an array": lambda d: d.train.encoded_tokens[0 : 3 : np.array([1, 2])],  # type: ignore[misc]
    "verify nothing": lambda d: verify_dataset(None),  # type: ignore[arg-type]
    "verify a file": lambda d: verify_dataset(d.path / "manifest.json"),
}
READ: dict[str, Call] = {
    f"{method}({', '.join(map(repr, arguments))})": lambda d, method=method, arguments=arguments: getattr(
        d.train, method
    )(*arguments)
    for method, *arguments in [
        ("sequence", 10**6),
        ("sequence", -(10**6)),
        ("sequence", 1.0),
        ("sequence", "1"),
        ("sequence", None),
        ("sequence", NAN),
        ("sequence", True),
        ("sequence", slice(0, 2)),
        ("sequences", [10**6]),
        ("sequences", [0.5]),
        ("sequences", "ab"),
        ("sequences", 3),
        ("sequences", [[1], [2, 3]]),
        ("sequences", [2**70]),
        ("row", 0, 0),
        ("row", 0, -4),
        ("row", 0, 2.5),
        ("row", 0, "4"),
        ("row", 0, None),
        ("row", 0, NAN),
        ("row", 0, 2**70),
        ("row", 10**9, 4),
        ("row", np.float64(1), 4),
        ("row", "x", 4),
        ("rows", [0], "4"),
        ("rows", [0.5], 4),
        ("rows", 0, 4),
        ("encoded_row", "a", 4),
        ("inputs_and_targets", 0, "a"),
        ("row_count", 0),
        ("row_count", 1.5),
        ("row_count", None),
    ]
}
READ |= {
    "iter_sequences of a text": lambda d: list(d.train.iter_sequences("a")),
    "iter_sequences from below": lambda d: list(d.train.iter_sequences(-1)),
    "iter_sequences to a fraction": lambda d: list(d.train.iter_sequences(0, 1.5)),
    "element of a text": lambda d: d.train.encoded_tokens["a"],
    "element of a fraction": lambda d: d.train.encoded_tokens[1.5],
    "element of a list": lambda d: d.train.encoded_tokens[[1, 2]],
    "element far out": lambda d: d.train.encoded_tokens[10**9],
    "elements with a step": lambda d: d.train.encoded_tokens[::2],
    "elements from a text": lambda d: d.train.encoded_tokens["a":],
    "starts of NaN": lambda d: d.train.seq_starts[NAN],
    "read of texts": lambda d: d.train.encoded_tokens.read("a", 2),
    "read backwards": lambda d: d.train.encoded_tokens.read(5, 2),
    "grain's length": lambda d: RowSource(d.train, "a"),  # type: ignore[arg-type]
    "grain's row": lambda d: RowSource(d.train, 4)["a"],
    "grain without a split": lambda d: RowSource(None, 4),  # type: ignore[arg-type]
}
LOADER: dict[str, Call] = {
    f"{name}={value!r}": lambda d, name=name, value=value: Loader(
        **{"array": d.train, "seq_len": 4, "batch_size": 8, name: value}
    )
    for name, value in [
        ("array", None),
        ("array", "train"),
        ("seq_len", 0),
        ("seq_len", 1.5),
        ("seq_len", "4"),
        ("seq_len", 2**70),
        ("seq_len", NAN),
        ("batch_size", 0),
        ("batch_size", 10**12),
        ("batch_size", 2.0),
        ("seed", -1),
        ("seed", 2**64),
        ("seed", None),
        ("batch_size", [(0, 8)]),
        ("rank", 0),
        ("world_size", 4),
        ("streams", 0),
        ("streams", 3),
        ("streams", "2"),
        ("padding_id", -1),
        ("padding_id", 10**9),
        ("packed", "yes"),
        ("packed", None),
        ("long_sequences", "cut"),
        ("long_sequences", None),
        ("long_sequences", np.array([1, 2])),
        ("shuffle", "no"),
        ("block_tokens", 0),
        ("block_tokens", 1.5),
        ("shuffle_blocks", 0),
        ("dtype", "float32"),
        ("dtype", "nothing"),
        ("dtype", 5),
        ("dtype", "uint8"),
    ]
}
LOADER |= {
    "the whole dataset": lambda d: Loader(d, 4, 8),
    "batch(-1)": lambda d: Loader(d.train, 4, 8).batch(-1),
    "batch(1.5)": lambda d: Loader(d.train, 4, 8).batch(1.5),  # type: ignore[arg-type]
    "batch('1')": lambda d: Loader(d.train, 4, 8).batch("1"),  # type: ignore[arg-type]
    "batch(nan)": lambda d: Loader(d.train, 4, 8).batch(NAN),  # type: ignore[arg-type]
    "state_at(None)": lambda d: Loader(d.train, 4, 8).state_at(None),  # type: ignore[arg-type]
    "rows_of('a')": lambda d: Loader(d.train, 4, 8).rows_of("a"),  # type: ignore[arg-type]
    "from_step(-1)": lambda d: Loader(d.train, 4, 8).from_step(-1),
    "from_step(5, 2)": lambda d: Loader(d.train, 4, 8).from_step(5, 2),
    "from_step(0, 'b')": lambda d: Loader(d.train, 4, 8).from_step(0, "b"),  # type: ignore[arg-type]
    "prefetch='x'": lambda d: Loader(d.train, 4, 8).from_step(0, prefetch="x"),  # type: ignore[arg-type]
}
MIXTURE: dict[str, Call] = {
    f"weights={weights!r}": lambda d, weights=weights: Mixture([d.train, d.train], weights, 4, 8)
    for weights in [
        [],
        [1],
        [1, -1],
        [1, NAN],
        ["a", 1],
        [0, 1],
        [float("inf"), 1],
        None,
        1,
        [[1, 2], [3, 4]],
        "ab",
    ]
}
MIXTURE |= {
    "weight infinite": lambda d: Mixture([d.train], [float("inf")], 4, 8),
    "arrays=[]": lambda d: Mixture([], [], 4, 8),
    "one array": lambda d: Mixture(d.train, [1], 4, 8),
    "a number among the arrays": lambda d: Mixture([d.train, 5], [1, 1], 4, 8),  # type: ignore[list-item]
    "seq_len='a'": lambda d: Mixture([d.train], [1], "a", 8),  # type: ignore[arg-type]
    "batch_size='a'": lambda d: Mixture([d.train], [1], 4, "a"),  # type: ignore[arg-type]
    "shuffle_blocks=0": lambda d: Mixture([d.train], [1], 4, 8, shuffle_blocks=0),
    "shuffle_blocks='a'": lambda d: Mixture([d.train], [1], 4, 8, shuffle_blocks="a"),  # type: ignore[arg-type]
    "seed=-1": lambda d: Mixture([d.train], [1], 4, 8, seed=-1),
    "batch(-1)": lambda d: Mixture([d.train], [1], 4, 8).batch(-1),
    "batch(1.5)": lambda d: Mixture([d.train], [1], 4, 8).batch(1.5),  # type: ignore[arg-type]
    "draws(None)": lambda d: Mixture([d.train], [1], 4, 8).draws(None),  # type: ignore[arg-type]
    "batch_size=2**63": lambda d: Mixture([d.train], [1], 4, 2**63),
    "no list of arrays": lambda d: Mixture(np.array(1), [1], 4, 8),  # type: ignore[arg-type]
    "no list of weights": lambda d: Mixture([d.train], np.array(1), 4, 8),  # type: ignore[arg-type]
    "draws(2**80)": lambda d: Mixture([d.train], [1], 4, 8).draws(2**80),
    "from_step('a')": lambda d: Mixture([d.train], [1], 4, 8).from_step("a"),  # type: ignore[arg-type]
    "from_step(0, 1.5)": lambda d: Mixture([d.train], [1], 4, 8).from_step(0, 1.5),  # type: ignore[arg-type]
}
PACKS: dict[str, Call] = {
    f"{name}={value!r}": lambda d, name=name, value=value: PackedSequences(
        **{"array": d.train, "max_seq_len": 1000, name: value}
    )
    for name, value in [
        ("array", None),
        ("max_seq_len", 0),
        ("max_seq_len", "a"),
        ("max_seq_len", 1.5),
        ("max_seq_len", 1),
        ("max_seq_len", 2**40),
        ("padding_id", -1),
        ("padding_id", "a"),
        ("max_packs", 0),
        ("max_packs", "a"),
        ("split_across_pack", "x"),
        ("strategy", "x"),
        ("strategy", None),
        ("strategy", ["greedy"]),
        ("strategy", np.array([1, 2])),
        ("window_seqs", 5),
        ("restart_positions", 2),
        ("ignore_first_labels", "no"),
    ]
}
PACKS |= {
    "the whole dataset": lambda d: PackedSequences(d, 1000),
    "window_seqs=0": lambda d: PackedSequences(d.train, 1000, strategy="best-fit", window_seqs=0),
    "pack far out": lambda d: PackedSequences(d.train, 1000)[10**9],
    "pack of a text": lambda d: PackedSequences(d.train, 1000)["a"],  # type: ignore[index]
    "packs of a slice": lambda d: PackedSequences(d.train, 1000)[0:2],  # type: ignore[index]
    "batch of a number": lambda d: PackedSequences(d.train, 1000).batch(5),  # type: ignore[arg-type]
    "batch of a text": lambda d: PackedSequences(d.train, 1000).batch(["a"]),  # type: ignore[list-item]
}
LAYOUT: dict[str, Call] = {
    f"{name}={value!r}": lambda d, name=name, value=value: ArrayLayout(**{name: value})
    for name, value in [
        ("zarr_format", 4),
        ("zarr_format", "2"),
        ("chunk_tokens", 0),
        ("chunk_tokens", "a"),
        ("chunk_tokens", NAN),
        ("shard_tokens", "a"),
        ("shard_tokens", 2**18 + 1),
        ("compression", "x"),
        ("compression", None),
        ("level", 99),
        ("level", "a"),
        ("level", 1.5),
        ("level", None),
    ]
}
LAYOUT |= {
    "create(3, 'a')": lambda d: ArrayLayout.create(3, "a"),  # type: ignore[arg-type]
    "create(array)": lambda d: ArrayLayout.create(np.array([1, 2])),  # type: ignore[arg-type]
    "create(compression=[])": lambda d: ArrayLayout.create(compression=[]),  # type: ignore[arg-type]
}
VIEWS: dict[str, Call] = {
    "selected of the whole dataset": lambda d: views.selected(d, [1]),
    "of_sources of nothing": lambda d: views.of_sources(None, "a"),  # type: ignore[arg-type]
    "all_trained of the whole dataset": lambda d: views.all_trained(d),
    "first_of_equals of the whole dataset": lambda d: views.first_of_equals(d),
}
CALLS = {
    f"{kind}: {name}": call
    for kind, calls in [
        ("open", OPEN),
        ("read", READ),
        ("loader", LOADER),
        ("mixture", MIXTURE),
        ("packs", PACKS),
        ("views", VIEWS),
        ("layout", LAYOUT),
    ]
    for name, call in calls.items()
}


@pytest.fixture
def dataset(make_dataset: Any) -> Any:
    generator = np.random.default_rng(3)
    sequences = [generator.integers(0, 500, size).tolist() for size in generator.integers(1, 20, 40)]
    return flat_tokens.open(make_dataset(sequences))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_is_reported_in_one_line(call: Call, dataset: Any) -> None:
    with pytest.raises(FlatTokensError) as caught:
        call(dataset)
    message = str(caught.value)
    assert message == message.strip()
    assert 10 < len(message) < 300
    assert "\n" not in message


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
