"""Reading: sequences, rows and slices equal the written sequences in every layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edit_json import edit_json

import flat_tokens
from flat_tokens.errors import DatasetError
from flat_tokens.storage.layout import ArrayLayout

FIXTURES = Path(__file__).parent / "datasets"


def test_an_index_of_a_narrow_type_does_not_wrap(make_dataset: Any) -> None:
    train = flat_tokens.open(make_dataset([[i] for i in range(600)])).train
    assert train.row(np.uint8(200), 2).ids.tolist() == [400, 401]
    assert train.sequence(np.uint8(255)).tolist() == [255]
    assert train.inputs_and_targets(np.int8(100), 3)[1].tolist() == [300, 301, 302]


@pytest.mark.parametrize("layout", [ArrayLayout.create(2, 4), ArrayLayout.create(3, 3, 6, "none")], ids=str)
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


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_mapped_memory_outlives_the_dataset(make_dataset: Any, zarr_format: int) -> None:
    tokens = flat_tokens.open(
        make_dataset(layout=ArrayLayout.create(zarr_format, 1024, compression="none"))
    ).train.encoded_tokens
    tokens.read(0, 1)  # verifies the checksum
    view = tokens.peek(0, 8)
    del tokens
    assert view.tolist() == [3, 4, 7, 8, 10, 13, 14, 16]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1


def test_more_zarr_chunks_than_the_cache_holds(make_dataset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flat_tokens.storage.stored_array.CACHE_BYTES", 5 * 16)
    for compression in ("zstd", "none"):
        layout = ArrayLayout.create(2, 4, compression=compression)
        train = flat_tokens.open(
            make_dataset([[i] for i in range(99)], layout=layout, name=compression)
        ).train
        order = np.random.default_rng(0).integers(0, 99, 400).tolist()
        assert [int(train.sequence(i)[0]) for i in order] == order


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_datasets_of_all_format_versions_stay_readable(zarr_format: int) -> None:
    path = FIXTURES / "format-3" / f"zarr-v{zarr_format}"
    dataset = flat_tokens.open(path)
    assert [sequence.tolist() for sequence in dataset.train.iter_sequences()] == [
        [1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]
    assert dataset.validation.seq_count == 0
    assert flat_tokens.verify_dataset(path).ok


def test_a_returned_array_is_the_callers(make_dataset: Any) -> None:
    train = flat_tokens.open(make_dataset()).train
    train.sequence(0)[:] = 0
    train.encoded_tokens[:][:] = 0
    assert train.sequence(0).tolist() == [1, 2]
