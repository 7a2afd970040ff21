"""import and export against the documented layouts: sound files, and damaged ones, which give one line each."""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import exchange_layouts as layouts
import numpy as np
import pytest
from test_exchange import documents

import flat_tokens
from flat_tokens.__main__ import main

DOCUMENTS = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]]


CASES = {
    "megatron": lambda place, found: layouts.write_megatron(place / "a", found),
    "megatron int64": lambda place, found: layouts.write_megatron(place / "a", found, "int64"),
    "datatrove": lambda place, found: layouts.write_datatrove(place / "a.ds", found),
    "datatrove uint32": lambda place, found: layouts.write_datatrove(place / "a.ds", found, "uint32"),
    "mds": lambda place, found: layouts.write_mds(place / "a", found),
    "mds zstd": lambda place, found: layouts.write_mds(place / "a", found, "uint32", zstd=True),
    "litdata": lambda place, found: layouts.write_litdata(place / "a", found),
    "litdata zstd": lambda place, found: layouts.write_litdata(place / "a", found, "int64", zstd=True),
}


def test_documents_of_megatron_without_a_sequence_are_left_out(tmp_path: Path) -> None:
    layouts.write_megatron(tmp_path / "a", [])
    index = (tmp_path / "a.idx").read_bytes()
    (tmp_path / "a.idx").write_bytes(index[:26] + struct.pack("<Q", 3) + bytes(24))
    assert main(["import", str(tmp_path / "a"), "--from", "megatron", "--output", str(tmp_path / "d")]) == 0
    assert documents(tmp_path / "d")["train"] == []


def test_an_index_of_some_ids_was_accepted_as_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layouts.write_megatron(tmp_path / "a", [[1, 2], [3]])
    with (tmp_path / "a.bin").open("ab") as file:
        file.write(bytes(10))
    arguments = ["import", str(tmp_path / "a"), "--from", "megatron", "--output", str(tmp_path / "d")]
    assert main(arguments) == 0
    assert re.search(r"note: .*a\.bin: 10 of 16 bytes", capsys.readouterr().err)


def test_sequences_of_megatron_may_be_in_any_order(tmp_path: Path) -> None:
    layouts.write_megatron(tmp_path / "a", DOCUMENTS)
    index = bytearray((tmp_path / "a.idx").read_bytes())
    struct.pack_into("<4i", index, 34, 2, 3, 1, 4)  # lengths
    struct.pack_into("<4q", index, 34 + 16, 8, 0, 8, 12)  # pointers, in bytes
    (tmp_path / "a.idx").write_bytes(index)
    assert main(["import", str(tmp_path / "a"), "--from", "megatron", "--output", str(tmp_path / "d")]) == 0
    assert documents(tmp_path / "d")["train"] == [[5, 6], [1, 2, 3], [5], [7, 8, 9, 10]]


def test_modes_and_masks_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layouts.write_megatron(tmp_path / "a", DOCUMENTS)
    with (tmp_path / "a.idx").open("ab") as file:
        file.write(bytes(len(DOCUMENTS)))
    assert main(["import", str(tmp_path / "a"), "--from", "megatron", "--output", str(tmp_path / "d")]) == 0
    assert "multimodal" in capsys.readouterr().err
    layouts.write_datatrove(tmp_path / "a.ds", DOCUMENTS)
    (tmp_path / "a.ds.loss").write_bytes(bytes(10))
    arguments = ["import", str(tmp_path / "a.ds"), "--from", "datatrove", "--output", str(tmp_path / "e")]
    assert main(arguments) == 0
    assert "loss masks" in capsys.readouterr().err


def _cut(name: str, count: int) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:-count])

    return cut


def _put(name: str, offset: int, data: bytes) -> Callable[[Path], None]:
    def put(folder: Path) -> None:
        found = bytearray((folder / name).read_bytes())
        found[offset : offset + len(data)] = data
        (folder / name).write_bytes(found)

    return put


def _edit(name: str, change: Callable[[dict], object]) -> Callable[[Path], None]:  # type: ignore[type-arg]
    def edit(folder: Path) -> None:
        value = json.loads((folder / name).read_text())
        change(value)
        (folder / name).write_text(json.dumps(value))

    return edit


def _stated_bytes(size: object, value: dict) -> None:  # type: ignore[type-arg]
    value["shards"][0]["raw_data"]["bytes"] = size


FAR = struct.pack("<q", 2**62)
DAMAGES: list[tuple[str, Callable[[Path], None], str]] = [
    ("megatron", _cut("a.bin", 1), "a.bin"),
    ("megatron", _cut("a.idx", 1), "a.idx: "),
    ("megatron", _cut("a.idx", 90), "a.idx: "),
    ("megatron", _put("a.idx", 0, b"TNTIDX"), "a.idx: "),
    ("megatron", _put("a.idx", 9, b"\x02"), "a.idx: "),
    ("megatron", _put("a.idx", 17, b"\x07"), "a.idx: "),
    ("megatron", _put("a.idx", 34, b"\xff\xff\xff\xff"), "a.idx: sequence 0: "),
    ("megatron", _put("a.idx", 34 + 16, FAR), "a.idx: sequence 0: "),
    ("megatron", _put("a.idx", 34 + 16, b"\x01"), "a.idx: sequence 0: "),
    ("megatron", _put("a.idx", 34 + 48, b"\x01"), "a.idx: "),
    ("megatron", _put("a.idx", 34 + 48 + 32, FAR), "a.idx: entry "),
    ("megatron", _put("a.idx", 34 + 48 + 16, b"\x00"), "a.idx: entry "),
    ("megatron", _put("a.idx", 34 + 48 + 32, b"\x03"), "a.idx: last entry "),
    ("megatron", lambda folder: (folder / "a.bin").unlink(), "a.bin: "),
    ("datatrove", _cut("a.ds", 1), "a.ds: "),
    ("datatrove", _cut("a.ds.index", 1), "a.ds.index: "),
    ("datatrove", _cut("a.ds.index", 8), "a.ds: "),
    ("datatrove", _put("a.ds.index", 0, FAR), "a.ds.index: entry "),
    ("datatrove", lambda folder: (folder / "a.ds.index").unlink(), "a.ds.index: "),
    ("mds", _cut("a/shard.00000.mds", 1), "shard.00000.mds: "),
    ("mds", _put("a/shard.00000.mds", 0, b"\x05"), "shard.00000.mds: "),
    ("mds", _put("a/shard.00000.mds", 4, bytes(4)), "shard.00000.mds: "),
    ("mds", _put("a/shard.00000.mds", 8, FAR), "shard.00000.mds: "),
    ("mds", _put("a/shard.00000.mds", 41, b"\xff"), "shard.00000.mds: sample "),
    (
        "mds",
        _edit("a/index.json", lambda value: value["shards"][0].update(version=3)),
        "index.json: shard 0 ",
    ),
    ("mds", _edit("a/index.json", lambda value: value["shards"][0].pop("samples")), "index.json: shard 0 "),
    ("mds", _edit("a/index.json", lambda value: value.pop("shards")), "index.json: "),
    (
        "mds",
        _edit("a/index.json", lambda value: value["shards"][0]["raw_data"].update(basename="../x")),
        "a: ",
    ),
    (
        "mds",
        _edit("a/index.json", lambda value: value["shards"][0].update(column_encodings=["str", "str"])),
        "--column tokens: ",
    ),
    (
        "mds",
        _edit(
            "a/index.json",
            lambda value: value["shards"][0].update(column_encodings=["str", "ndarray:float32"]),
        ),
        "--column tokens: ",
    ),
    (
        "mds",
        _edit("a/index.json", lambda value: value["shards"][0].update(column_encodings=["str"])),
        "index.json: shard 0 ",
    ),
    (
        "mds",
        _edit("a/index.json", lambda value: value["shards"][0].update(column_sizes=[None, "x"])),
        "index.json: shard 0 ",
    ),
    ("mds", lambda folder: (folder / "a/index.json").write_text("{"), "index.json: "),
    ("mds", lambda folder: shutil.rmtree(folder / "a"), "index.json: "),
    ("mds zstd", _put("a/shard.00000.mds.zstd", 20, bytes(8)), "shard.00000.mds.zstd: "),
    (
        "mds zstd",
        _edit("a/index.json", lambda value: value["shards"][0]["raw_data"].update(bytes=20)),
        "shard.00000.mds.zstd: ",
    ),
    *(
        ("mds zstd", _edit("a/index.json", partial(_stated_bytes, size)), "shard.00000.mds.zstd: ")
        for size in (-1, 2**31 + 1, 1.5, "x")
    ),
    ("litdata", _cut("a/chunk-0-0.bin", 1), "chunk-0-0.bin: "),
    ("litdata", _put("a/chunk-0-0.bin", 0, b"\x05"), "chunk-0-0.bin: "),
    ("litdata", _put("a/chunk-0-0.bin", 8, FAR), "chunk-0-0.bin: "),
    (
        "litdata",
        _edit("a/index.json", lambda value: value["config"].update(item_loader="X")),
        "index.json: ",
    ),
    (
        "litdata",
        _edit("a/index.json", lambda value: value["config"].update(compression_level=3)),
        "index.json: ",
    ),
    (
        "litdata",
        _edit("a/index.json", lambda value: value["config"].update(encryption={"a": 1})),
        "index.json: ",
    ),
    (
        "litdata",
        _edit("a/index.json", lambda value: value["config"].update(data_format=["str"])),
        "index.json: ",
    ),
    (
        "litdata",
        _edit("a/index.json", lambda value: value["config"].update(data_format=["jpeg", "int"])),
        "index.json: ",
    ),
]


@pytest.mark.parametrize("number", range(len(DAMAGES)))
def test_damage_is_one_line(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, damage, where = DAMAGES[number]
    CASES[case](tmp_path, DOCUMENTS)
    damage(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    place = tmp_path / ("a.ds" if case.startswith("datatrove") else "a")
    assert main(["import", str(place), "--from", case.split()[0], "--output", str(tmp_path / "d")]) in (2, 3)
    error = capsys.readouterr().err
    assert where in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_text_is_not_a_file_of_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["import", "--from", "nanogpt", "--separator-token", "2", str(tmp_path / "a.bin")]
    (tmp_path / "a.bin").write_bytes(b"The mill by the river.\n" * 40)
    assert main([*arguments, "--output", str(tmp_path / "d")]) == 3
    assert "a.bin: " in capsys.readouterr().err
    (tmp_path / "a.bin").write_bytes(b"ab" * 400)  # only one distinct ID
    assert main([*arguments, "--output", str(tmp_path / "d")]) == 0


def a_shard(path: Path, words: list[int], ids: list[int], dtype: str) -> list[str]:
    """Write a header of 256 int32 and the IDs; return the arguments that import the file."""
    header = np.zeros(256, np.int32)
    header[: len(words)] = words
    path.write_bytes(header.tobytes() + np.array(ids, dtype).tobytes())
    return ["import", str(path), "--from", "nanogpt", "--separator-token", "none"]


@pytest.mark.parametrize(
    ("magic", "version", "dtype", "ids"),
    [
        (20240520, 1, "uint16", [50256, 5, 6, 7]),
        (20240801, 7, "uint32", [128000, 5, 6, 7]),
        (20240520, 1, "uint16", []),
    ],
)
def test_a_header_of_llm_c_became_tokens(
    magic: int, version: int, dtype: str, ids: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shard of Llama 3 IDs had 520 tokens instead of 4."""
    arguments = a_shard(tmp_path / "a.bin", [magic, version, len(ids)], ids, dtype)
    assert main([*arguments, "--output", str(tmp_path / "d")]) == 0
    assert [found.tolist() for found in flat_tokens.open(tmp_path / "d").train] == ([ids] if ids else [])
    other = "uint32" if dtype == "uint16" else "uint16"
    capsys.readouterr()
    assert main([*arguments, "--dtype", other, "--output", str(tmp_path / "e")]) == 2
    assert re.search(rf"a\.bin: .*{dtype}.*--dtype", capsys.readouterr().err)
    for count in (len(ids) + 1, len(ids) - 1):
        a_shard(tmp_path / "a.bin", [magic, version, count], ids, dtype)
        assert main([*arguments, "--output", str(tmp_path / "e")]) == 3
        assert "a.bin: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [[20240520, 2, 4], [20240801, 1, 4], [20250101, 3, 4], [77, 1, 4], [77]])
@pytest.mark.parametrize("dtype", [None, "uint16", "uint32"])
def test_unknown_headers_are_refused(
    words: list[int], dtype: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = a_shard(tmp_path / "a.bin", words, [50256, 5, 6, 7], "uint16")
    arguments += [] if dtype is None else ["--dtype", dtype]
    assert main([*arguments, "--output", str(tmp_path / "d")]) == 3
    error = capsys.readouterr().err
    assert re.search(rf"a\.bin: .*\b{words[0]}\b", error)
    assert error.count("\n") == 1


@pytest.mark.parametrize("kind", ["npy", "npz", "gzip", "parquet", "megatron", "zstd"])
def test_files_of_other_kinds_are_not_ids(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids, path = np.arange(300, dtype=np.uint16), tmp_path / "a.bin"
    with path.open("wb") as file:
        if kind == "npy":
            np.save(file, ids)
        elif kind == "npz":
            np.savez(file, ids)
        else:
            begin = {"gzip": b"\x1f\x8b\x08", "parquet": b"PAR1", "megatron": b"MMIDIDX\0\0"}
            file.write(begin.get(kind, b"\x28\xb5\x2f\xfd") + bytes(range(1, 10)) * 100)
    arguments = ["import", str(path), "--from", "nanogpt", "--separator-token", "none"]
    assert main([*arguments, "--output", str(tmp_path / "d")]) == 3
    assert "a.bin: " in capsys.readouterr().err
