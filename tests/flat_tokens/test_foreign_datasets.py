"""Datasets that others wrote with zarr, in layouts that are read here or left to zarr."""

from __future__ import annotations

import bz2
import lzma
import os
import pickle
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
import zstandard
from edit_json import edit_json

import flat_tokens
from flat_tokens import format as flat_format
from flat_tokens.errors import DatasetError
from flat_tokens.storage.codecs import crc32c_bytes


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
    with pytest.raises(DatasetError):
        flat_tokens.open(root, tokenizer="tokenizer.json")


@pytest.mark.parametrize("array", ["encoded_tokens", "seq_starts"])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda file: file.unlink(), id="missing"),
        pytest.param(lambda file: file.write_bytes(b""), id="empty"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes()[:5]), id="torn"),
        pytest.param(lambda file: (file.unlink(), os.mkfifo(file)), id="pipe"),
    ],
)
def test_damage_where_zarr_reads(tmp_path: Path, array: str, damage: Any) -> None:
    root = tmp_path / "foreign"
    key_encoding = {"name": "v2", "separator": "."}
    foreign_dataset(root, 3, chunk_key_encoding=key_encoding)
    damage(root / "train" / array / "1")
    report = flat_tokens.verify_dataset(root)
    assert not report.ok
    assert f"train/{array}/1: " in report.problems[0]
    with pytest.raises(DatasetError, match=f"train/{array}/1: "):
        flat_tokens.open(root).train.sequences([0, 1, 2])


def test_shards_of_nothing_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "foreign"
    foreign_dataset(root, 3, shards=(6,))
    grid = {"name": "regular", "configuration": {"chunk_shape": [0]}}
    edit_json(root / "train/encoded_tokens/zarr.json", chunk_grid=grid)
    with pytest.raises(DatasetError):
        flat_tokens.open(root)


def zeros(compressor: Any, size: int = 2**26) -> bytes:
    return b"".join(compressor.compress(bytes(2**20)) for _ in range(size >> 20)) + compressor.flush()


KEYS = {"name": "v2", "separator": "."}
DELTA = [numcodecs.Delta(dtype="<u8", astype="<i4")]
BOMBS = [
    pytest.param(
        3,
        {"chunk_key_encoding": KEYS, "compressors": zarr.codecs.GzipCodec()},
        lambda: zlib.compressobj(9, zlib.DEFLATED, 31),
        id="v3 gzip",
    ),
    pytest.param(
        3,
        {"chunk_key_encoding": KEYS},
        lambda: zstandard.ZstdCompressor(write_content_size=False).compressobj(),
        id="v3 zstd",
    ),
    pytest.param(2, {"compressors": numcodecs.BZ2(1), "filters": DELTA}, bz2.BZ2Compressor, id="v2 bz2"),
    pytest.param(2, {"compressors": numcodecs.LZMA(), "filters": DELTA}, lzma.LZMACompressor, id="v2 lzma"),
    pytest.param(2, {"compressors": numcodecs.Zlib(1), "filters": DELTA}, zlib.compressobj, id="v2 zlib"),
]


@pytest.mark.parametrize(("zarr_format", "options", "compressor"), BOMBS)
def test_a_bomb_is_refused_before_zarr_decodes_it(
    tmp_path: Path, zarr_format: int, options: dict[str, Any], compressor: Any
) -> None:
    """zarr decodes to the end of a stream: 1 GB of zeros took 7 GB."""
    root = tmp_path / "foreign"
    foreign_dataset(root, zarr_format, **options)
    (root / "train/seq_starts/0").write_bytes(zeros(compressor(), 2**22 if zarr_format == 3 else 2**24))
    tracemalloc.start()
    try:
        with pytest.raises(
            DatasetError,
            match="seq_starts/0",
        ):
            flat_tokens.open(root)
        assert not flat_tokens.verify_dataset(root).ok
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_inner_zarr_chunks_of_shards_that_zarr_reads_have_a_bound_as_well(tmp_path: Path) -> None:
    root = tmp_path / "foreign"
    foreign_dataset(root, 3, chunk_key_encoding=KEYS, shards=(6,))
    assert flat_tokens.verify_dataset(root).ok
    shard = root / "train/encoded_tokens/0"
    bomb = zeros(zstandard.ZstdCompressor(write_content_size=False).compressobj(), 2**20)
    data = shard.read_bytes()
    index = np.frombuffer(data[-36:-4], "<u8").reshape(2, 2).copy()
    index[1] = len(data) - 36, len(bomb)
    shard.write_bytes(data[:-36] + bomb + index.tobytes() + crc32c_bytes(index.tobytes()))
    assert flat_tokens.open(root).train.sequence(0).tolist() == [1, 2]
    with pytest.raises(DatasetError, match="encoded_tokens/0"):
        flat_tokens.open(root).train.sequence(1)
    assert "encoded_tokens" in flat_tokens.verify_dataset(root).problems[0]


def test_a_file_that_is_put_in_place_of_a_checked_one_is_checked(tmp_path: Path) -> None:
    root = tmp_path / "foreign"
    foreign_dataset(root, 3, chunk_key_encoding=KEYS)
    train = flat_tokens.open(root).train
    assert train.sequence(0).tolist() == train.sequence(0).tolist() == [1, 2]
    bomb = zeros(zstandard.ZstdCompressor(write_content_size=False).compressobj(), 2**20)
    (root / "train/encoded_tokens/0").write_bytes(bomb)
    with pytest.raises(DatasetError):
        train.sequence(0)


I1_TO_I8 = {"id": "delta", "dtype": "<u8", "astype": "|i1"}
REFUSED_CHAINS: dict[str, dict[str, Any]] = {
    "data types that grow": {"filters": [I1_TO_I8] * 9},
    "text": {"filters": [{"id": "astype", "encode_dtype": "<u8", "decode_dtype": "|S1000000"}]},
    "a compressor behind a filter": {
        "filters": [{"id": "bz2"}, {"id": "delta", "dtype": "<u8"}],
        "fill_value": 1,
    },
    "many codecs": {"filters": [{"id": "zlib"}] * 30},
    "packed bits": {"filters": [{"id": "packbits"}]},
}


@pytest.mark.parametrize("case", REFUSED_CHAINS)
def test_chains_without_a_bound_are_refused(tmp_path: Path, case: str) -> None:
    root = tmp_path / "foreign"
    foreign_dataset(root, 2)
    edit_json(root / "train/seq_starts/.zarray", **REFUSED_CHAINS[case])
    with pytest.raises(DatasetError, match="train/seq_starts") as caught:
        flat_tokens.open(root)
    assert "\n" not in str(caught.value)


def test_a_codec_within_shards_that_is_not_known_to_run_no_code_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "foreign"
    foreign_dataset(root, 3)
    codecs = [{"name": "numcodecs.pickle"}, {"name": "bytes", "configuration": {"endian": "little"}}]
    shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": codecs}}
    edit_json(root / "train/seq_starts/zarr.json", codecs=[shards])
    with pytest.raises(DatasetError):
        flat_tokens.open(root)


def test_a_pipe_beside_the_metadata_is_not_waited_for(tmp_path: Path) -> None:
    root = tmp_path / "foreign"
    foreign_dataset(root, 2, filters=DELTA)
    (root / "train/seq_starts/.zattrs").unlink(missing_ok=True)
    os.mkfifo(root / "train/seq_starts/.zattrs")
    with pytest.raises(DatasetError, match=r"\.zattrs"):
        flat_tokens.open(root)
