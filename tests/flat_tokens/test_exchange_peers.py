"""import and export against the tools themselves, in both directions."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_exchange import SMALL, documents

from flat_tokens.__main__ import main

pytestmark = pytest.mark.promise("exchange")

LARGEST = {"uint16": 65_535, "int32": 2**31 - 1, "uint32": 2**31 - 1, "int64": 2**31 - 1}


def some_documents(seed: int, largest: int, least: int = 1, count: int = 200) -> list[list[int]]:
    rng = random.Random(seed)
    print(f"seed {seed}")
    lengths = [rng.choice([least, 1, 3, 40, 900]) for _ in range(count)]
    return [[rng.randint(0, largest) for _ in range(length)] for length in lengths]


def imported(tmp_path: Path, *words: str) -> dict[str, list[list[int]]]:
    """Return the documents after `import words`."""
    assert main(["import", *words, "--output", str(tmp_path / "imported")]) == 0
    return documents(tmp_path / "imported")


@pytest.mark.parametrize("largest", [65_535, 2**31 - 1])
def test_megatron_reads_exports(largest: int, make_dataset: Callable[..., Path], tmp_path: Path) -> None:
    module = pytest.importorskip(
        "megatron.core.datasets.indexed_dataset", reason="megatron-core is not installed"
    )
    expected = some_documents(1, largest)
    dataset = make_dataset(expected, expected[:3], SMALL)
    assert main(["export", str(dataset), "--to", "megatron", "--output", str(tmp_path / "out")]) == 0
    for split, documents_ in (("train", expected), ("validation", expected[:3])):
        found = module.IndexedDataset(str(tmp_path / "out" / split))
        assert [found[index].tolist() for index in range(len(found))] == documents_
        assert found.document_indices.tolist() == list(range(len(documents_) + 1))


@pytest.mark.parametrize("dtype", ["uint16", "int32", "int64"])
def test_megatron_files_are_imported(dtype: str, tmp_path: Path) -> None:
    module = pytest.importorskip(
        "megatron.core.datasets.indexed_dataset", reason="megatron-core is not installed"
    )
    import torch

    expected = some_documents(2, LARGEST[dtype], least=0)
    builder = module.IndexedDatasetBuilder(str(tmp_path / "a.bin"), dtype=getattr(np, dtype))
    for at, ids in enumerate(expected):
        parts = [ids[: len(ids) // 2], ids[len(ids) // 2 :]] if at % 3 == 0 else [ids]
        for part in parts:  # some documents have two sequences
            builder.add_item(torch.tensor(part, dtype=torch.int64))
        builder.end_document()
    builder.finalize(str(tmp_path / "a.idx"))
    found = imported(tmp_path, str(tmp_path / "a"), "--from", "megatron")
    assert found["train"] == [ids for ids in expected if ids]


@pytest.mark.parametrize("token_size", [2, 4])
def test_datatrove_files_are_imported(token_size: int, tmp_path: Path) -> None:
    module = pytest.importorskip("datatrove.pipeline.tokens.tokenizer", reason="datatrove is not installed")
    expected = some_documents(3, LARGEST["uint16" if token_size == 2 else "uint32"])
    folder = str(tmp_path / "ds")
    for rank, part in enumerate((expected[:120], expected[120:])):
        file = module.TokenizedFile(
            folder,
            f"{rank:05d}.ds",
            save_final_metadata=True,
            token_size=token_size,
        )
        for ids in part:
            file.write(ids, None)
        file.close()
    assert imported(tmp_path, folder, "--from", "datatrove")["train"] == expected
    arguments = [f"{folder}/00000.ds", "--from", "datatrove", "--overwrite"]
    assert imported(tmp_path, *arguments)["train"] == expected[:120]
    (tmp_path / "ds/00001.ds.index").unlink()  # save_index=False: only a token separates documents
    arguments = [f"{folder}/00001.ds", "--from", "datatrove", "--overwrite", "--separator-token", "none"]
    arguments += ["--dtype", "uint16" if token_size == 2 else "uint32"]
    assert imported(tmp_path, *arguments)["train"] == [[id_ for ids in expected[120:] for id_ in ids]]


@pytest.mark.parametrize(
    "encoding", ["ndarray:uint16", "ndarray:uint32", "ndarray", "ndarray:int32:8", "bytes"]
)
@pytest.mark.parametrize("compression", [None, "zstd:3", "gz"])
def test_mosaicml_streaming_files_are_imported(
    encoding: str, compression: str | None, tmp_path: Path
) -> None:
    streaming = pytest.importorskip("streaming", reason="mosaicml-streaming is not installed")
    dtype = {"ndarray:uint16": "uint16", "ndarray:int32:8": "int32", "bytes": "int64"}.get(encoding, "uint32")
    expected = some_documents(4, LARGEST[dtype])
    if encoding.endswith(":8"):
        expected = [(ids * 8)[:8] for ids in expected]
    with streaming.MDSWriter(
        out=str(tmp_path / "mds"),
        columns={"id": "str", "score": "float64", "tokens": encoding},
        compression=compression,
        hashes=["sha1", "xxh64"],
        size_limit=1 << 15,
    ) as writer:
        for at, ids in enumerate(expected):
            values: Any = np.array(ids, dtype)
            writer.write(
                {"id": str(at), "score": 0.5, "tokens": values.tobytes() if encoding == "bytes" else values}
            )
    arguments = [str(tmp_path / "mds"), "--from", "mds"]
    arguments += ["--dtype", dtype] if encoding == "bytes" else []
    assert imported(tmp_path, *arguments)["train"] == expected


@pytest.mark.parametrize("dtype", ["uint16", "int32", "int64"])
@pytest.mark.parametrize("kind", ["tensor", "numpy"])
def test_litdata_files_are_imported(dtype: str, kind: str, tmp_path: Path) -> None:
    pytest.importorskip("litdata", reason="litdata is not installed")
    import torch
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter

    expected = some_documents(5, LARGEST[dtype])
    writer = BinaryWriter(str(tmp_path / "lit"), chunk_bytes=1 << 15, item_loader=TokensLoader())
    for at, ids in enumerate(expected):
        values = np.array(ids, dtype)
        writer[at] = torch.from_numpy(values) if kind == "tensor" else values
    writer.done()
    writer.merge()
    assert imported(tmp_path, str(tmp_path / "lit"), "--from", "litdata")["train"] == expected
