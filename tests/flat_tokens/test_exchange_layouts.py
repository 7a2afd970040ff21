"""import and export against the documented layouts: sound files, and damaged ones, which give one line each."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import exchange_layouts as layouts
import numpy as np
import pytest
from test_exchange import Captured, documents, folder, names, run

import flat_tokens

__all__ = ["folder"]  # a fixture
DOCUMENTS = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]]
WRITERS: dict[str, Callable[..., None]] = {
    "megatron": layouts.write_megatron,
    "datatrove": layouts.write_datatrove,
    "mds": layouts.write_mds,
    "litdata": layouts.write_litdata,
}


def test_documents_of_megatron_without_a_sequence_are_left_out() -> None:
    layouts.write_megatron(Path("a"), [])
    index = Path("a.idx").read_bytes()
    Path("a.idx").write_bytes(index[:26] + struct.pack("<Q", 3) + bytes(24))
    assert run("import a --from megatron --output d") == 0
    assert documents("d")["train"] == []


def test_an_index_of_some_ids_was_accepted_as_complete(capsys: Captured) -> None:
    layouts.write_megatron(Path("a"), [[1, 2], [3]])
    with Path("a.bin").open("ab") as file:
        file.write(bytes(10))
    assert run("import a --from megatron --output d") == 0
    assert re.search(r"note: .*a\.bin: 10 of 16 bytes", capsys.readouterr().err)


def test_sequences_of_megatron_may_be_in_any_order() -> None:
    layouts.write_megatron(Path("a"), DOCUMENTS)
    index = bytearray(Path("a.idx").read_bytes())
    struct.pack_into("<4i", index, 34, 2, 3, 1, 4)  # lengths
    struct.pack_into("<4q", index, 34 + 16, 8, 0, 8, 12)  # pointers, in bytes
    Path("a.idx").write_bytes(index)
    assert run("import a --from megatron --output d") == 0
    assert documents("d")["train"] == [[5, 6], [1, 2, 3], [5], [7, 8, 9, 10]]


def test_modes_and_masks_are_reported(capsys: Captured) -> None:
    layouts.write_megatron(Path("a"), DOCUMENTS)
    with Path("a.idx").open("ab") as file:
        file.write(bytes(len(DOCUMENTS)))
    assert run("import a --from megatron --output d") == 0
    assert "multimodal" in capsys.readouterr().err
    layouts.write_datatrove(Path("a.ds"), DOCUMENTS)
    Path("a.ds.loss").write_bytes(bytes(10))
    assert run("import a.ds --from datatrove --output e") == 0
    assert "loss masks" in capsys.readouterr().err


# Changes of a file: bytes to remove from its end, (offset, bytes) to write, or a function of an index.
FAR = struct.pack("<q", 2**62)
SHARD, PACKED, CHUNK = "a/shard.00000.mds", "a/shard.00000.mds.zstd", "a/chunk-0-0.bin"
INDEX = "a/index.json"
DAMAGES: list[tuple[str, str, Any, str]] = [
    ("megatron", "a.bin", 1, "a.bin"),
    ("megatron", "a.idx", 1, "a.idx: "),
    ("megatron", "a.idx", (0, b"TNTIDX"), "a.idx: "),
    ("megatron", "a.idx", (17, b"\x07"), "a.idx: "),
    ("megatron", "a.idx", (34, b"\xff\xff\xff\xff"), "a.idx: sequence 0: "),
    ("megatron", "a.idx", (50, FAR), "a.idx: sequence 0: "),
    ("megatron", "a.idx", (114, FAR), "a.idx: entry "),
    ("megatron", "a.idx", (114, b"\x03"), "a.idx: last entry "),
    ("megatron", "a.bin", None, "a.bin: "),
    ("datatrove", "a.ds.index", 1, "a.ds.index: "),
    ("datatrove", "a.ds.index", (0, FAR), "a.ds.index: entry "),
    ("datatrove", "a.ds.index", None, "a.ds.index: "),
    ("mds", SHARD, (8, FAR), "shard.00000.mds: "),
    ("mds", SHARD, (41, b"\xff"), "shard.00000.mds: sample "),
    ("mds", INDEX, lambda v: v["shards"][0].update(version=3), "index.json: shard 0 "),
    ("mds", INDEX, lambda v: v.pop("shards"), "index.json: "),
    ("mds", INDEX, lambda v: v["shards"][0]["raw_data"].update(basename="../x"), "a: "),
    ("mds", INDEX, lambda v: v["shards"][0].update(column_encodings=["str", "str"]), "--column tokens: "),
    ("mds", "a", None, "index.json: "),
    ("mds zstd", PACKED, (20, bytes(8)), "shard.00000.mds.zstd: "),
    *(
        (
            "mds zstd",
            INDEX,
            lambda v, n=n: v["shards"][0]["raw_data"].update(bytes=n),
            "shard.00000.mds.zstd: ",
        )
        for n in (20, -1, 2**31 + 1, 1.5, "x")
    ),
    ("litdata", CHUNK, (8, FAR), "chunk-0-0.bin: "),
    *(
        ("litdata", INDEX, lambda v, changes=changes: v["config"].update(changes), "index.json: ")
        for changes in (
            *({"item_loader": "X"}, {"compression_level": 3}, {"encryption": {"a": 1}}),
            *({"data_format": ["str"]}, {"data_format": ["jpeg", "int"]}),
        )
    ),
]


def damage(path: Path, change: Any) -> None:
    if change is None:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif callable(change):
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))
    elif isinstance(change, int):
        os.truncate(path, path.stat().st_size - change)
    else:
        with path.open("r+b") as file:
            file.seek(change[0])
            file.write(change[1])


@pytest.mark.parametrize("number", range(len(DAMAGES)))
def test_damage_is_one_line(number: int, capsys: Captured) -> None:
    case, name, change, where = DAMAGES[number]
    tool, _, packed = case.partition(" ")
    place = "a.ds" if tool == "datatrove" else "a"
    WRITERS[tool](Path(place), DOCUMENTS, **{"zstd": True} if packed else {})
    damage(Path(name), change)
    before = names()
    assert run(f"import {place} --from {tool} --output d") in (2, 3)
    error = capsys.readouterr().err
    assert where in error
    assert error.count("\n") == 1
    assert names() == before


def test_text_is_not_a_file_of_ids(capsys: Captured) -> None:
    command = "import --from nanogpt --separator-token 2 a.bin --output d"
    Path("a.bin").write_bytes(b"The mill by the river.\n" * 40)
    assert run(command) == 3
    assert "a.bin: " in capsys.readouterr().err
    Path("a.bin").write_bytes(b"ab" * 400)  # only one distinct ID
    assert run(command) == 0


def a_shard(words: list[int], ids: list[int], dtype: str) -> str:
    """Write a header of 256 int32 and the IDs to a.bin; return the command that imports it."""
    header = np.zeros(256, np.int32)
    header[: len(words)] = words
    Path("a.bin").write_bytes(header.tobytes() + np.array(ids, dtype).tobytes())
    return "import a.bin --from nanogpt --separator-token none"


@pytest.mark.parametrize(
    ("magic", "version", "dtype", "ids"),
    [
        (20240520, 1, "uint16", [50256, 5, 6, 7]),
        (20240801, 7, "uint32", [128000, 5, 6, 7]),
        (20240520, 1, "uint16", []),
    ],
)
def test_a_header_of_llm_c_became_tokens(
    magic: int, version: int, dtype: str, ids: list[int], capsys: Captured
) -> None:
    """A shard of Llama 3 IDs had 520 tokens instead of 4."""
    command = a_shard([magic, version, len(ids)], ids, dtype)
    assert run(f"{command} --output d") == 0
    assert [found.tolist() for found in flat_tokens.open("d").train] == ([ids] if ids else [])
    other = "uint32" if dtype == "uint16" else "uint16"
    capsys.readouterr()
    assert run(f"{command} --dtype {other} --output e") == 2
    assert re.search(rf"a\.bin: .*{dtype}.*--dtype", capsys.readouterr().err)
    for count in (len(ids) + 1, len(ids) - 1):
        a_shard([magic, version, count], ids, dtype)
        assert run(f"{command} --output e") == 3
        assert "a.bin: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [[20240520, 2, 4], [20240801, 1, 4], [20250101, 3, 4], [77, 1, 4], [77]])
@pytest.mark.parametrize("dtype", ["", "--dtype uint16", "--dtype uint32"])
def test_unknown_headers_are_refused(words: list[int], dtype: str, capsys: Captured) -> None:
    assert run(f"{a_shard(words, [50256, 5, 6, 7], 'uint16')} {dtype} --output d") == 3
    error = capsys.readouterr().err
    assert re.search(rf"a\.bin: .*\b{words[0]}\b", error)
    assert error.count("\n") == 1


@pytest.mark.parametrize("kind", ["npy", "npz", "gzip", "parquet", "megatron", "zstd"])
def test_files_of_other_kinds_are_not_ids(kind: str, capsys: Captured) -> None:
    with Path("a.bin").open("wb") as file:
        if kind in ("npy", "npz"):
            (np.save if kind == "npy" else np.savez)(file, np.arange(300, dtype=np.uint16))
        else:
            begin = {"gzip": b"\x1f\x8b\x08", "parquet": b"PAR1", "megatron": b"MMIDIDX\0\0"}
            file.write(begin.get(kind, b"\x28\xb5\x2f\xfd") + bytes(range(1, 10)) * 100)
    assert run("import a.bin --from nanogpt --separator-token none --output d") == 3
    assert "a.bin: " in capsys.readouterr().err
