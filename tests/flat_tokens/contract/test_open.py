"""Open and read: every layout and store equals numpy, zarr reads the same arrays, and damage is one clean error."""

from __future__ import annotations

import itertools
import os
import pickle
import shutil
import tracemalloc
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import flat_tokens
from flat_tokens import ArgumentError, DatasetError
from flat_tokens.storage import zstd_frames
from flat_tokens.storage.layout import ArrayLayout
from tests.flat_tokens.contract.drawn_datasets import (
    COMPRESSIONS,
    Drawn,
    check_equal,
    datasets,
    files_of,
    layouts,
)
from tests.flat_tokens.small_datasets import EXAMPLE, from_sequences, write_dataset

zarr_warns = pytest.mark.filterwarnings("ignore:Object at .* is not recognized")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("open")


@given(drawn=datasets())
def test_reading_equals_numpy(folder: Path, drawn: Drawn) -> None:
    dataset = flat_tokens.open(drawn.write_in(folder))
    for train in (dataset.train, pickle.loads(pickle.dumps(dataset)).train):
        check_equal(train, drawn.sequences)
        assert train.max_token_id == max(itertools.chain(*drawn.sequences), default=0)
        assert train.sources_of(np.arange(train.seq_count)) == drawn.origins
        assert (train.loss_mask is None) == (drawn.trained is None)
        if train.loss_mask is not None:
            assert train.loss_mask[:].tolist() == drawn.trained
            assert np.concatenate([[], *map(train.trained_of, range(len(train)))]).tolist() == drawn.trained
    check_equal(dataset.validation, drawn.splits["validation"])
    assert dataset.manifest is not None
    assert [source["path"] for source in dataset.sources()] == [path for path, _ in drawn.sources]
    assert dataset.sources(1) == dataset.sources()[:1]


@pytest.mark.promise("format")
@zarr_warns
@given(drawn=datasets().filter(lambda drawn: not drawn.is_on_store))
def test_zarr_reads_a_split_completely(folder: Path, drawn: Drawn) -> None:
    root = zarr.open_group(drawn.write_in(folder), mode="r")
    encoded, starts, max_token_id = from_sequences(drawn.sequences)
    assert {name for name, _ in root.members()} == {"train", "validation"} | (
        set() if drawn.trained is None else {"loss_mask"}
    )
    train: Any = root["train"]
    assert {name for name, _ in train.members()} == {"encoded_tokens", "seq_starts"}
    assert dict(train.attrs) == {"max_token_id": max_token_id}
    assert train["encoded_tokens"][:].tolist() == encoded.tolist()
    assert train["seq_starts"][:].tolist() == starts.tolist()
    if drawn.trained is not None:
        bits: Any = root["loss_mask/train"]
        assert np.unpackbits(bits[:], count=len(encoded), bitorder="little").tolist() == drawn.trained


BY_OTHERS: dict[str, Any] = {
    "raw": {},
    "zstd": {"compressors": numcodecs.Zstd(3)},
    "lz4": {"compressors": numcodecs.LZ4()},
    "gzip": {"compressors": numcodecs.GZip()},
    "seqax": {"filters": [numcodecs.Delta("<i8", "<i8")], "compressors": numcodecs.Blosc("zstd", 3)},
    "blosc": {"compressors": numcodecs.Blosc("lz4hc", 3, numcodecs.Blosc.SHUFFLE)},
    "3": {"compressors": zarr.codecs.GzipCodec()},
    "3 shards": {"compressors": zarr.codecs.BloscCodec(cname="zlib"), "shards": (12,)},
    "3 index first": {
        "shards": {"shape": (12,), "index_location": "start"},
        "compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()],
    },
}


def write_with_zarr(path: Path, **options: Any) -> None:
    """Write the example without a manifest. options: of the arrays."""
    version: Any = 3 if isinstance(options.get("compressors"), list | zarr.abc.codec.Codec) else 2
    root = zarr.create_group(path, zarr_format=version)
    for split, sequences in (("train", EXAMPLE), ("validation", [])):
        encoded, starts, max_token_id = from_sequences(sequences)
        group = root.create_group(split, attributes={"max_token_id": max_token_id})
        for name, data in (("encoded_tokens", encoded), ("seq_starts", starts)):
            own = dict(options)
            if "filters" in own:
                own["filters"] = [numcodecs.Delta(data.dtype.str, data.dtype.str)]
            own = {"compressors": None} | own
            group.create_array(name, data=data, chunks=(3,), config={"write_empty_chunks": True}, **own)


@pytest.mark.promise("format")
@zarr_warns
@pytest.mark.parametrize("kind", BY_OTHERS)
def test_datasets_of_others_open(tmp_path: Path, kind: str) -> None:
    write_with_zarr(tmp_path / "d", **BY_OTHERS[kind])
    dataset = flat_tokens.open(tmp_path / "d")
    check_equal(dataset.train, EXAMPLE)
    assert not dataset.has_manifest
    assert flat_tokens.verify_dataset(tmp_path / "d").ok
    with pytest.raises(DatasetError, match="sources are unknown"):
        dataset.train.source_of(0)


@zarr_warns
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"compressors": numcodecs.BZ2()}, "bz2"),
        ({"compressors": numcodecs.LZMA()}, "lzma"),
        ({"filters": [numcodecs.Shuffle()]}, "shuffle"),
        ({"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.GzipCodec()]}, "one compressor"),
    ],
    ids=["bz2", "lzma", "shuffle", "two"],
)
def test_other_codecs_are_named(tmp_path: Path, options: dict[str, Any], name: str) -> None:
    root = zarr.create_group(tmp_path / "d", zarr_format=3 if name == "one compressor" else 2)
    for split in ("train", "validation"):
        group = root.create_group(split, attributes={"max_token_id": 1})
        for array, dtype in (("encoded_tokens", "<u4"), ("seq_starts", "<u8")):
            group.create_array(array, data=np.zeros(1, dtype), **options)
    with pytest.raises(DatasetError, match=rf"train/encoded_tokens/.*{name}.*zarr\.create_array") as caught:
        flat_tokens.open(tmp_path / "d")
    assert "\n" not in str(caught.value)


@given(
    drawn=datasets().filter(lambda drawn: len(drawn.sequences) > 3 and not drawn.is_on_store), data=st.data()
)
def test_a_damaged_file_is_one_error(folder: Path, drawn: Drawn, data: st.DataObject) -> None:
    """Truncated anywhere, removed or replaced by a folder: reading equals the original or raises one line."""
    root = drawn.write_in(folder)
    damaged = data.draw(st.sampled_from(sorted(str(path) for path in files_of(root / "train"))).map(Path))
    kind = data.draw(st.sampled_from(["truncate", "remove", "folder", "pipe"]))
    whole = damaged.read_bytes()
    damaged.unlink()
    if kind == "truncate":
        damaged.write_bytes(whole[: data.draw(st.integers(0, max(0, len(whole) - 1)))])
    elif kind == "folder":
        damaged.mkdir()
    elif kind == "pipe":
        os.mkfifo(damaged)
    with pytest.raises((DatasetError, OSError)) as caught:
        list(flat_tokens.open(root).train)
    assert "\n" not in str(caught.value)
    assert "train" in str(caught.value)
    shutil.rmtree(root)


@pytest.mark.promise("checksums")
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_flipped_bit_is_found_where_the_layout_has_checksums(
    tmp_path: Path, zarr_format: int, compression: str
) -> None:
    layout = ArrayLayout.create(zarr_format, 64, compression=compression)
    sequences = np.random.default_rng(1).integers(0, 999, (40, 9)).tolist()
    write_dataset(tmp_path / "d", sequences, [], layout)
    path = tmp_path / "d/train/encoded_tokens" / ("0" if zarr_format == 2 else "c/0")
    whole = path.read_bytes()
    rng, missed = np.random.default_rng(2), 0
    for at in rng.integers(0, min(len(whole), 150), 40).tolist():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << int(rng.integers(8))]) + whole[at + 1 :])
        try:
            missed += [ids.tolist() for ids in flat_tokens.open(tmp_path / "d").train] != sequences
        except DatasetError as error:
            assert "encoded_tokens" in str(error)  # noqa: PT017
    assert not missed or (zarr_format == 2 and compression != "zstd")


@zarr_warns
@pytest.mark.parametrize("kind", ["zstd", "lz4", "gzip", "blosc", "seqax"])
def test_a_bomb_is_not_decoded(tmp_path: Path, kind: str) -> None:
    """A Zarr chunk of a few kilobytes that decodes to 4 MiB."""
    options = BY_OTHERS[kind]
    write_with_zarr(tmp_path / "d", **options)
    codec = options["compressors"]
    (tmp_path / "d/train/encoded_tokens/0").write_bytes(codec.encode(np.zeros(2**20, np.uint32)))
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError, match="encoded_tokens/0: must decode to 12 bytes"):
            flat_tokens.open(tmp_path / "d").train.sequence(0)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_forked_process_reads(tmp_path: Path, compression: str) -> None:
    write_dataset(tmp_path / "d", EXAMPLE, [], ArrayLayout.create(2, 1024, compression=compression))
    train = flat_tokens.open(tmp_path / "d").train
    assert train.sequence(0).tolist() == EXAMPLE[0]
    with get_context("fork").Pool(1) as pool:
        assert pool.apply(train.sequence, (1,)).tolist() == EXAMPLE[1]


def test_without_libzstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """numcodecs replaces it. Its zstd frames differ but decode to the same tokens."""
    layouts = [ArrayLayout.create(zarr_format, 8) for zarr_format in (2, 3)]
    for layout in layouts:
        write_dataset(tmp_path / f"with-{layout.zarr_format}", EXAMPLE, [], layout)
    monkeypatch.setattr(zstd_frames, "library", lambda: None)
    for layout in layouts:
        write_dataset(tmp_path / f"other-{layout.zarr_format}", EXAMPLE, [], layout)
        check_equal(flat_tokens.open(tmp_path / f"with-{layout.zarr_format}").train, EXAMPLE)
    monkeypatch.undo()
    for layout in layouts:
        check_equal(flat_tokens.open(tmp_path / f"other-{layout.zarr_format}").train, EXAMPLE)


@given(layout=layouts(), at=st.integers(-9, 9))
def test_positions_outside_are_index_errors(folder: Path, layout: ArrayLayout, at: int) -> None:
    train = flat_tokens.open(Drawn(layout, {"train": EXAMPLE}).write_in(folder)).train
    for read, count in (
        (train.sequence, 3),
        (lambda i: train.row(i, 3), 2),
        (train.seq_starts.__getitem__, 4),
    ):
        if not -count <= at < count:
            with pytest.raises(IndexError, match=rf"got {at}"):
                read(at)
    with pytest.raises(ArgumentError, match="step"):
        _ = train.encoded_tokens[::2]
