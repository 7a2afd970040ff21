"""Reading: sequences, rows and slices equal those of the sequences that were written, in every layout."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edit_json import edit_json

import flat_tokens
from flat_tokens import format as flat_format
from flat_tokens.errors import ArgumentError, DatasetError, RangeError
from flat_tokens.storage.layout import ArrayLayout

FIXTURES = Path(__file__).parent / "datasets"
TINY = [
    pytest.param(ArrayLayout.create(2, 1), id="v2-1"),
    pytest.param(ArrayLayout.create(2, 3, compression="none"), id="v2-3"),
    pytest.param(ArrayLayout.create(2, 4, compression="lz4-bitshuffle"), id="v2-4"),
    pytest.param(ArrayLayout(), id="v2"),
    pytest.param(ArrayLayout.create(3, 1, 1), id="v3-1"),
    pytest.param(ArrayLayout.create(3, 3, 6, "none"), id="v3-3-6"),
    pytest.param(ArrayLayout.create(3, 4, 16, "lz4"), id="v3-4-16"),
]


@pytest.mark.parametrize("layout", TINY)
def test_every_sequence_and_row(make_dataset: Any, random_sequences: Any, layout: ArrayLayout) -> None:
    sequences = random_sequences(4, 12, longest=4)
    dataset = flat_tokens.open(make_dataset(sequences, random_sequences(5, 1), layout))
    train = dataset["train"]
    assert (train.seq_count, len(train)) == (12, 12)
    assert [train.sequence(i).tolist() for i in range(12)] == sequences
    assert [train.sequence(i - 12).tolist() for i in range(12)] == sequences
    assert [sequence.tolist() for sequence in train.iter_sequences(3, 99)] == sequences[3:]
    encoded, starts, max_token_id = flat_format.from_sequences(sequences)
    assert train.max_token_id == max_token_id
    assert train.seq_starts[:].tolist() == starts.tolist()
    all_inputs, all_targets = flat_format.inputs_and_targets(encoded)
    for length in (1, 3, 4, len(encoded) - 1, len(encoded)):
        assert train.row_count(length) == len(encoded) // length
        for index in range(train.row_count(length)):
            part = slice(index * length, (index + 1) * length)
            assert train.encoded_row(index, length).tolist() == encoded[part].tolist()
            row = train.row(index - train.row_count(length), length)
            assert row.ids.tolist() == flat_format.decode_ids(encoded)[part].tolist()
            assert row.is_start.tolist() == flat_format.decode_start_flags(encoded)[part].tolist()
            inputs, targets = train.inputs_and_targets(index, length)
            assert inputs.tolist() == all_inputs[part].tolist()
            assert targets.tolist() == all_targets[part].tolist()
    for start in range(len(encoded)):
        for stop in range(start, min(start + 9, len(encoded) + 1)):
            assert train.encoded_tokens[start:stop].tolist() == encoded[start:stop].tolist()


@pytest.mark.parametrize("layout", TINY)
def test_batched_forms_equal_single_ones(
    make_dataset: Any, random_sequences: Any, layout: ArrayLayout
) -> None:
    train = flat_tokens.open(make_dataset(random_sequences(9, 20, longest=5), layout=layout)).train
    order = np.random.default_rng(1).integers(-20, 20, 50)
    for indices in (order, order.tolist(), order[:0], [], np.array([3, 3], dtype=np.uint8)):
        found = train.sequences(indices)
        assert [ids.tolist() for ids in found] == [train.sequence(int(i)).tolist() for i in indices]
    for length in (1, 2, 3, train.token_count):
        indices = np.random.default_rng(2).integers(-train.row_count(length), train.row_count(length), 9)
        rows = pickle.loads(pickle.dumps(train.rows(indices, length)))
        assert rows.ids.shape == rows.is_start.shape == (9, length)
        assert rows.ids.tolist() == [train.row(i, length).ids.tolist() for i in indices]
        assert rows.is_start.tolist() == [train.row(i, length).is_start.tolist() for i in indices]
    assert train.rows([], 3).ids.shape == (0, 3)
    assert [ids.tolist() for ids in train] == [train[i].tolist() for i in range(20)]
    for wrong in ([0.5], [[1]], "1"):
        with pytest.raises(ArgumentError, match="indices"):
            train.rows(wrong, 3)
    with pytest.raises(RangeError, match="train: index of a row .*99"):
        train.rows([0, 99], 3)
    with pytest.raises(RangeError, match="train: index of a sequence .*20"):
        train.sequences([0, 20])


def test_an_index_of_a_narrow_type_does_not_wrap(make_dataset: Any) -> None:
    train = flat_tokens.open(make_dataset([[i] for i in range(600)])).train
    assert train.row(np.uint8(200), 2).ids.tolist() == [400, 401]
    assert train.sequence(np.uint8(255)).tolist() == [255]
    assert train.inputs_and_targets(np.int8(100), 3)[1].tolist() == [300, 301, 302]


def test_a_row_unpacks_and_prints(make_dataset: Any) -> None:
    ids, is_start = row = flat_tokens.open(make_dataset()).train.row(1, 3)
    assert (ids.tolist(), is_start.tolist()) == ([4, 5, 6], [False, False, True])
    assert repr(row).startswith("Row(ids=array([4, 5, 6]")


@pytest.mark.parametrize("layout", TINY)
def test_an_id_above_max_token_id(make_dataset: Any, layout: ArrayLayout) -> None:
    root = make_dataset([[1, 2], [3, 4, 5], [6, 7, 8]], layout=layout)
    (root / "manifest.json").unlink()
    if layout.zarr_format == 2:
        edit_json(root / "train/.zattrs", max_token_id=4)
    else:
        edit_json(root / "train/zarr.json", attributes={"max_token_id": 4})
    train = flat_tokens.open(root).train
    with pytest.raises(DatasetError, match="max_token_id"):
        [train.row(i, 1) for i in range(8)]


@pytest.mark.parametrize("stop", [0, 3, 11])
def test_torn_raw_files(make_dataset: Any, random_sequences: Any, stop: int) -> None:
    root = make_dataset(random_sequences(3, 30), layout=ArrayLayout.create(2, 3, compression="none"))
    file = root / "train/encoded_tokens/2"
    file.write_bytes(file.read_bytes()[:stop])
    with pytest.raises(DatasetError, match="encoded_tokens/2: "):
        flat_tokens.open(root).train.row(2, 3)


@pytest.mark.parametrize("stop", [0, 3, -1])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_torn_shards(make_dataset: Any, random_sequences: Any, compression: str, stop: int) -> None:
    root = make_dataset(random_sequences(3, 30), layout=ArrayLayout.create(3, 4, 16, compression))
    file = root / "train/encoded_tokens/c/1"
    file.write_bytes(file.read_bytes()[:stop])
    train = flat_tokens.open(root).train
    assert len(train.row(0, 4).ids) == 4
    with pytest.raises(DatasetError, match="encoded_tokens/c/1: "):
        train.row(5, 4)


def test_a_flip_in_a_raw_zarr_chunk_of_format_3(make_dataset: Any, random_sequences: Any) -> None:
    root = make_dataset(random_sequences(3, 30), layout=ArrayLayout.create(3, 4, 16, "none"))
    file = root / "train/encoded_tokens/c/0"
    data = bytearray(file.read_bytes())
    data[30] ^= 1
    file.write_bytes(data)
    train = flat_tokens.open(root).train
    assert len(train.row(0, 4).ids) == 4
    with pytest.raises(DatasetError, match="chunk 1"):
        train.row(1, 4)


def test_mapped_memory_outlives_the_dataset(make_dataset: Any) -> None:
    root = make_dataset(layout=ArrayLayout.create(2, 8, compression="none"))
    view = flat_tokens.open(root).train.encoded_tokens.peek(0, 8)
    assert view.tolist() == [3, 4, 7, 8, 10, 13, 14, 16]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_more_zarr_chunks_than_the_cache_holds(make_dataset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flat_tokens.storage.chunk_source.CACHE_BYTES", 5 * 16)
    monkeypatch.setattr("flat_tokens.storage.chunk_source.LARGEST_MAP_COUNT", 3)
    for compression in ("zstd", "none"):
        layout = ArrayLayout.create(2, 4, compression=compression)
        train = flat_tokens.open(
            make_dataset([[i] for i in range(99)], layout=layout, name=compression)
        ).train
        order = np.random.default_rng(0).integers(0, 99, 400).tolist()
        assert [int(train.sequence(i)[0]) for i in order] == order


def test_decoded_zarr_chunks_after_a_fork(make_dataset: Any) -> None:
    import multiprocessing

    train = flat_tokens.open(make_dataset()).train
    train.sequence(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(train.sequence, (1,)).tolist() == [3, 4, 5]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("version", [1, 2])
def test_datasets_of_all_format_versions_stay_readable(version: int, zarr_format: int) -> None:
    path = FIXTURES / f"format-{version}" / f"zarr-v{zarr_format}"
    dataset = flat_tokens.open(path)
    assert [sequence.tolist() for sequence in dataset.train.iter_sequences()] == [
        [1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]
    assert dataset.validation.seq_count == 0
    assert flat_tokens.verify_dataset(path).ok


@pytest.mark.parametrize("layout", TINY)
def test_empty_splits(make_dataset: Any, layout: ArrayLayout) -> None:
    dataset = flat_tokens.open(make_dataset([], [], layout))
    assert (dataset.train.token_count, dataset.train.seq_count, dataset.train.max_token_id) == (0, 0, 0)
    assert list(dataset.train.iter_sequences()) == []
    assert dataset.train.row_count(1) == 0
    with pytest.raises(IndexError, match="train: index of a sequence"):
        dataset.train.sequence(0)


def test_errors_name_bound_and_value(make_dataset: Any) -> None:
    train = flat_tokens.open(make_dataset()).train
    for call, where in (
        (lambda: train.sequence(3), r"train: index of a sequence .*\(got 3\)"),
        (lambda: train.sequence(-4), r"train: index of a sequence .*\(got -4\)"),
        (lambda: train.row(2, 3), r"train: index of a row .*\(got 2\)"),
        (lambda: train.row(0, 0), r"length of a row: .*\(got 0\)"),
        (lambda: train.seq_starts[4], r"train/seq_starts: index .*\(got 4\)"),
        (lambda: train.encoded_tokens[::2], r"train/encoded_tokens: .*\(got 2\)"),
        (lambda: train.encoded_tokens.read(3, 9), r"train/encoded_tokens: .*\(got \[3, 9\)\)"),
    ):
        with pytest.raises(ArgumentError, match=where):
            call()
    assert issubclass(RangeError, IndexError)
    with pytest.raises(KeyError, match="got 'test'"):
        flat_tokens.open(make_dataset(name="e"))["test"]


def test_pickled(make_dataset: Any) -> None:
    dataset = flat_tokens.open(make_dataset())
    assert dataset.train.sequence(1).tolist() == [3, 4, 5]
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.train.sequence(1).tolist() == [3, 4, 5]
    assert "3 sequences, 8 tokens" in repr(copy.train)
    assert len(pickle.dumps(dataset.train)) < 3000  # no zarr chunk travels along


def test_a_returned_array_is_the_callers(make_dataset: Any) -> None:
    train = flat_tokens.open(make_dataset()).train
    train.sequence(0)[:] = 0
    train.encoded_tokens[:][:] = 0
    assert train.sequence(0).tolist() == [1, 2]


def test_lost_files_are_errors_not_zeros(make_dataset: Any, random_sequences: Any) -> None:
    root = make_dataset(random_sequences(6, 30), layout=ArrayLayout.create(2, 4))
    (root / "train/encoded_tokens/2").unlink()
    train = flat_tokens.open(root).train
    assert len(train.encoded_tokens[0:8]) == 8
    with pytest.raises(DatasetError, match="encoded_tokens/2"):
        train.encoded_tokens[8:9]


def test_flips_are_found_on_reading(make_dataset: Any, random_sequences: Any) -> None:
    for layout in (ArrayLayout(), ArrayLayout.create(3)):
        root = make_dataset(random_sequences(7, 3000), layout=layout, name=f"d{layout.zarr_format}")
        file = root / "train/encoded_tokens" / ("0" if layout.zarr_format == 2 else "c/0")
        data = bytearray(file.read_bytes())
        data[len(data) // 2 if layout.zarr_format == 2 else 100] ^= 16
        file.write_bytes(data)
        with pytest.raises(DatasetError):
            flat_tokens.open(root).train.sequence(0)


def test_reading_from_threads(make_dataset: Any, random_sequences: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    sequences = random_sequences(8, 200)
    for layout in (ArrayLayout.create(2, 16), ArrayLayout.create(3, 4, 16)):
        train = flat_tokens.open(make_dataset(sequences, layout=layout, name=f"d{layout.zarr_format}")).train
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            with ThreadPoolExecutor(4) as executor:
                order = np.random.default_rng(0).permutation(np.repeat(np.arange(200), 3)).tolist()
                assert [ids.tolist() for ids in executor.map(train.sequence, order)] == [
                    sequences[i] for i in order
                ]
        finally:
            sys.setswitchinterval(interval)
