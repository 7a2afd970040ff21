"""Regression tests, one per fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import flat_tokens
from flat_tokens import ArgumentError, Loader, PackedSequences, Writer
from flat_tokens.__main__ import main
from flat_tokens.errors import DatasetError, RefusedError
from flat_tokens.grain import RowSource
from flat_tokens.storage.entries import highest_id
from flat_tokens.storage.layout import ArrayLayout

ROWS = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [1, 1], [2, 2, 2]]


def write(root: Path, rows: Any = ROWS, tokenizer: Path | None = None, **options: Any) -> flat_tokens.Dataset:
    """Write a dataset with these sequences in both splits."""
    with Writer(root, tokenizer, **options) as writer:
        for split in ("train", "validation"):
            for row in rows:
                writer.add(split, row)
    return flat_tokens.open(root)


def tokenizer_with(path: Path, **ids: Any) -> Path:
    path.write_text(json.dumps({"model": {"vocab": ids}}).replace("Infinity", "1e999"))
    return path


def test_a_mask_written_by_zarr_in_format_3_was_refused(tmp_path: Path) -> None:
    write(tmp_path / "d", layout=ArrayLayout.create(3, 16), has_mask=True)
    (tmp_path / "d" / "manifest.json").unlink()
    path = tmp_path / "d" / "loss_mask" / "train"
    bits = zarr.open_array(path)[:]
    zarr.create_array(path, data=bits, overwrite=True)
    mask = flat_tokens.open(tmp_path / "d").train.loss_mask
    assert mask is not None
    assert mask[:].all()


def test_the_size_of_the_vocabulary_depended_on_the_order_of_datasets(tmp_path: Path) -> None:
    without = tmp_path / "a"
    write(without)
    write(tmp_path / "b", tokenizer=tokenizer_with(tmp_path / "t.json", a=99))
    for paths in ([without, tmp_path / "b"], [tmp_path / "b", without]):
        assert flat_tokens.open(paths).vocab_size == 100


def test_nested_datasets_lost_their_sources(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / name, sources=[{"path": name, "train_sequences": 5, "validation_sequences": 5}])
    nested = flat_tokens.open([[tmp_path / "a", tmp_path / "b"], tmp_path / "c"])
    assert [source["path"] for source in nested.sources()] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("packed", "options"),
    [({"padding_id": 3}, {}), ({}, {"start_id": 3})],
    ids=["padding_id", "start_id"],
)
def test_states_of_other_rows_were_accepted(
    tmp_path: Path, packed: dict[str, int], options: dict[str, int]
) -> None:
    train = write(tmp_path / "d").train
    state = Loader(PackedSequences(train, 4), 4, 2).state_at(1)
    other = Loader(PackedSequences(train, 4, **packed), 4, 2, **options)
    with pytest.raises(ArgumentError, match="state: "):
        other.step_of(state)


@pytest.mark.parametrize(
    "options", [{"drop_last": False}, {"fields": ("inputs", "targets")}, {"start_id": 1}]
)
def test_grain_did_not_see_other_items_in_the_repr(tmp_path: Path, options: dict[str, Any]) -> None:
    train = write(tmp_path / "d").train
    assert repr(RowSource(train, 3)) != repr(RowSource(train, 3, **options))


def test_an_iterator_that_was_not_read_used_up_an_epoch(tmp_path: Path) -> None:
    loader = Loader(write(tmp_path / "d").train, 3, 2)
    iter(loader)
    assert np.array_equal(next(iter(loader)).ids, loader.batch(0).ids)


@pytest.mark.parametrize("ids", [[[1], [2, 3]], [[1, 2], [3, 4]], "text", [1.5]])
def test_a_writer_raised_errors_of_numpy(tmp_path: Path, ids: Any) -> None:
    with (
        pytest.raises(ArgumentError, match="ids: must be integers in one dimension"),
        Writer(tmp_path / "d") as w,
    ):
        w.add("train", ids)
    with pytest.raises(ArgumentError, match="loss_mask"), Writer(tmp_path / "d", has_mask=True) as w:
        w.add("train", [1, 2], ids)


def test_a_data_type_was_parsed_as_python(tmp_path: Path) -> None:
    write(tmp_path / "d", layout=ArrayLayout.create(3, 16))
    (tmp_path / "d" / "manifest.json").unlink()
    path = tmp_path / "d" / "train" / "encoded_tokens" / "zarr.json"
    path.write_text(path.read_text().replace('"uint32"', '"(2,"'))
    with pytest.raises(DatasetError, match="data type must be one of"):
        flat_tokens.open(tmp_path / "d")


def test_an_infinite_id_of_a_tokenizer_overflowed(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"t\.json"):
        highest_id(tokenizer_with(tmp_path / "t.json", a=float("inf")))


def test_an_export_counted_missing_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "d", [[1, 2], [3, 9], [9, 9]], options={"append_token": {"id": 9}})
    out = str(tmp_path / "out")
    assert main(["export", str(tmp_path / "d"), "--to", "nanogpt", "--split", "train", "-o", out]) == 0
    assert "token 9 occurs 1 times within documents" in capsys.readouterr().err


def test_errors_named_an_option_to_python_users(tmp_path: Path) -> None:
    write(tmp_path / "d")
    with pytest.raises(RefusedError, match="overwrite=True in Python"):
        Writer(tmp_path / "d")


def test_an_empty_split_needed_a_smaller_seq_len(tmp_path: Path) -> None:
    with Writer(tmp_path / "d") as writer:
        writer.add("train", [1])
    with pytest.raises(ArgumentError, match="the split is empty"):
        Loader(flat_tokens.open(tmp_path / "d").validation, 8, 1)


@pytest.mark.parametrize(("version", "fix"), [(2, "Convert again"), (99, "Update tokenmill")])
def test_earlier_datasets_needed_a_newer_tokenmill(tmp_path: Path, version: int, fix: str) -> None:
    write(tmp_path / "d")
    path = tmp_path / "d" / "manifest.json"
    path.write_text(path.read_text().replace('"format_version": 3', f'"format_version": {version}'))
    with pytest.raises(DatasetError, match=fix):
        flat_tokens.open(tmp_path / "d")
    with pytest.raises(RefusedError, match="Delete it first"):
        write(tmp_path / "d", overwrite=True)
