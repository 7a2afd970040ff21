"""Views: parts joined and sequences selected read as the copy does that they stand for."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from small_datasets import Sequences, write_dataset

import flat_tokens
from flat_tokens import ArgumentError, FlatTokensArray, Loader
from flat_tokens.format import from_sequences
from flat_tokens.packing import PackedSequences
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.views import first_of_equals, joined, selected

LAYOUTS = [
    ArrayLayout.create(zarr_format=3, chunk_tokens=8, shard_tokens=32),
    ArrayLayout.create(zarr_format=2, chunk_tokens=16),
    ArrayLayout.create(zarr_format=2, chunk_tokens=16, compression="none"),
]


def sequences(rng: np.random.Generator, count: int, largest: int = 500) -> list[list[int]]:
    lengths = rng.integers(1, 30, count)
    return [rng.integers(0, largest, length).tolist() for length in lengths]


def split_of(root: Path, train: Sequences, layout: ArrayLayout) -> FlatTokensArray:
    write_dataset(root, train, [], layout)
    return flat_tokens.open(root).train


def check_equal(array: FlatTokensArray, wanted: Sequences) -> None:
    encoded, starts, _ = from_sequences(wanted)
    assert [array.sequence(index).tolist() for index in range(len(array))] == list(wanted)
    assert array.encoded_tokens[:].tolist() == encoded.tolist()
    assert array.seq_starts[:].tolist() == starts.tolist()
    rng = np.random.default_rng(1)
    for start, stop in np.sort(rng.integers(0, len(encoded) + 1, (20, 2))).tolist():
        assert array.encoded_tokens[start:stop].tolist() == encoded[start:stop].tolist()
    rows = rng.permutation(array.row_count(5))
    assert array.rows(rows, 5).ids.tolist() == [array.row(row, 5).ids.tolist() for row in rows]


@pytest.mark.parametrize("layout", LAYOUTS, ids=["sharded", "zstd", "raw"])
@pytest.mark.parametrize("counts", [(20, 0, 31), (0, 0), (0, 7), (5,), (1, 1, 1, 1)])
def test_joined_reads_as_one_array(tmp_path: Path, layout: ArrayLayout, counts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(counts))
    parts = [sequences(rng, count) for count in counts]
    arrays = [split_of(tmp_path / f"{at}", part, LAYOUTS[at % 3]) for at, part in enumerate(parts)]
    view = joined(tmp_path, "train", arrays)
    whole = [sequence for part in parts for sequence in part]
    check_equal(view, whole)
    check_equal(pickle.loads(pickle.dumps(view)), whole)
    if len(whole) > 20:
        copy = split_of(tmp_path / "copy", whole, layout)
        batches = [
            [(batch.inputs.tolist(), batch.targets.tolist()) for batch in Loader(own, 2, 12, seed=3)]
            for own in (view, copy)
        ]
        assert batches[0] == batches[1]
        packs = [[pack.tokens.tolist() for pack in PackedSequences(own, 40)] for own in (view, copy)]
        assert packs[0] == packs[1]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_selected_reads_as_its_copy(tmp_path: Path, share: float) -> None:
    rng = np.random.default_rng(7)
    whole = sequences(rng, 80)
    array = split_of(tmp_path / "a", whole, LAYOUTS[0])
    chosen = np.flatnonzero(rng.random(80) < share)
    view = selected(array, chosen)
    check_equal(view, [whole[at] for at in chosen])
    again = np.flatnonzero(rng.random(len(chosen)) < 0.5)  # a view of a view
    check_equal(selected(view, again), [whole[at] for at in chosen[again]])


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ([1, 1], r"sequences must rise, but sequences\[1\] = 1 is not above 1"),
        ([2, 1], r"sequences\[1\] = 1 is not above 2"),
        ([-1, 2], r"sequence -1 is outside \[0, 5\)"),
        ([4, 5], r"sequence 5 is outside \[0, 5\)"),
        ([0.5], "must be integers"),
    ],
)
def test_what_cannot_be_selected(tmp_path: Path, chosen: list[float], said: str) -> None:
    array = split_of(tmp_path / "a", sequences(np.random.default_rng(0), 5), LAYOUTS[1])
    with pytest.raises(ArgumentError, match=said):
        selected(array, chosen)


def test_without_exact_duplicates(tmp_path: Path) -> None:
    whole = [[1, 2], [3], [1, 2], [1], [2], [3], [1, 2, 3]]
    array = split_of(tmp_path / "a", whole, LAYOUTS[0])
    assert first_of_equals(array).tolist() == [0, 1, 3, 4, 6]
    check_equal(selected(array, first_of_equals(array)), [[1, 2], [3], [1], [2], [1, 2, 3]])
