"""Datasets that others wrote with zarr, in layouts that are read here or left to zarr."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numcodecs
import pytest
import zarr
from edit_json import edit_json

import flat_tokens
from flat_tokens import format as flat_format
from flat_tokens.errors import DatasetError


def foreign_dataset(root: Path, zarr_format: int, **options: Any) -> None:
    """Written by zarr with its defaults, as other programs do."""
    group = zarr.open_group(root, mode="w-", zarr_format=zarr_format)
    for name, sequences in (("train", [[1, 2], [3, 4, 5], [6, 7, 8]]), ("validation", [])):
        split = group.require_group(name)
        encoded, starts, split.attrs["max_token_id"] = flat_format.from_sequences(sequences)
        for array_name, values in (("encoded_tokens", encoded), ("seq_starts", starts)):
            filters = options.get("filters") if len(values) > 1 and array_name == "seq_starts" else None
            array = split.create_array(
                array_name,
                shape=values.shape,
                dtype=values.dtype,
                chunks=(3,),
                **{**options, "filters": filters if zarr_format == 2 else filters or "auto"},
            )
            array[:] = values


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
@pytest.mark.parametrize(
    ("zarr_format", "options"),
    [
        pytest.param(2, {}, id="v2 defaults"),
        pytest.param(2, {"filters": [numcodecs.Delta(dtype="i8")]}, id="v2 delta"),
        pytest.param(
            2, {"filters": [numcodecs.Delta(dtype="<u8", astype="<i4")]}, id="v2 delta of another type"
        ),
        pytest.param(2, {"compressors": numcodecs.GZip(1)}, id="v2 gzip"),
        pytest.param(2, {"compressors": numcodecs.LZ4(1)}, id="v2 lz4"),
        pytest.param(2, {"compressors": None}, id="v2 raw"),
        pytest.param(2, {"chunk_key_encoding": {"name": "v2", "separator": "/"}}, id="v2 separator"),
        pytest.param(3, {}, id="v3 defaults"),
        pytest.param(3, {"compressors": None}, id="v3 raw"),
        pytest.param(3, {"shards": (6,)}, id="v3 sharded"),
        pytest.param(3, {"compressors": zarr.codecs.GzipCodec()}, id="v3 gzip"),
        pytest.param(3, {"chunk_key_encoding": {"name": "default", "separator": "."}}, id="v3 separator"),
        pytest.param(3, {"chunk_key_encoding": {"name": "v2", "separator": "."}}, id="v3, left to zarr"),
    ],
)
def test_datasets_of_others_open(tmp_path: Path, zarr_format: int, options: dict[str, Any]) -> None:
    root = tmp_path / "foreign"
    foreign_dataset(root, zarr_format, **options)
    dataset = pickle.loads(pickle.dumps(flat_tokens.open(root)))
    assert dataset.manifest is None
    assert dataset.tokenizer_path is None
    assert [sequence.tolist() for sequence in dataset.train.iter_sequences()] == [
        [1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]
    assert dataset.validation.seq_starts[:].tolist() == [0]
    report = flat_tokens.verify_dataset(root)
    assert (report.ok, report.has_manifest, report.problems) == (True, False, ())
    chunk_files = [path for path in root.rglob("*") if path.name.split(".")[-1].isdigit()]
    assert report.byte_count == sum(path.stat().st_size for path in chunk_files) > 0
    with pytest.raises(DatasetError, match="does not say which tokenizer"):
        flat_tokens.open(root, tokenizer="tokenizer.json")


@pytest.mark.parametrize("array", ["encoded_tokens", "seq_starts"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(lambda file: file.unlink(), "not there; zarr would read it as zeros", id="missing"),
        pytest.param(lambda file: file.write_bytes(b""), "empty; restore it", id="empty"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes()[:5]), "zarr cannot read it", id="torn"),
        pytest.param(
            lambda file: (file.unlink(), os.mkfifo(file)), "not a regular file; restore it", id="pipe"
        ),
    ],
)
def test_damage_where_zarr_reads(tmp_path: Path, array: str, damage: Any, message: str) -> None:
    root = tmp_path / "foreign"
    key_encoding = {"name": "v2", "separator": "."}
    foreign_dataset(root, 3, chunk_key_encoding=key_encoding)
    damage(root / "train" / array / "1")
    report = flat_tokens.verify_dataset(root)
    assert not report.ok
    assert any(text in report.problems[0] for text in (message, "is a special file"))
    with pytest.raises(DatasetError, match=message):
        flat_tokens.open(root).train.sequences([0, 1, 2])


def test_shards_of_nothing_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "foreign"
    foreign_dataset(root, 3, shards=(6,))
    grid = {"name": "regular", "configuration": {"chunk_shape": [0]}}
    edit_json(root / "train/encoded_tokens/zarr.json", chunk_grid=grid)
    with pytest.raises(DatasetError, match="8 elements in files of 0 cannot be"):
        flat_tokens.open(root)
