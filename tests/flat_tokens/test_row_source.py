"""Rows brought into windows: the last tokens of zarr chunks are remembered, and compared before they are used."""

from __future__ import annotations

import json
from typing import Any

import numcodecs
import numpy as np
import pytest

import flat_tokens
from flat_tokens.errors import DatasetError
from flat_tokens.rows.row_source import ChunkReader, PackedRows
from flat_tokens.rows.row_window import RowWindow
from flat_tokens.storage.elements import StoredElements
from flat_tokens.storage.layout import ArrayLayout

CHUNK = 8


@pytest.mark.parametrize("length", [CHUNK, 3])
def test_last_tokens_are_remembered(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    sequences = random_sequences(7, 40, longest=12, largest_id=27)
    train = flat_tokens.open(make_dataset(sequences, layout=ArrayLayout.create(2, CHUNK))).train
    chunks = ChunkReader(train.encoded_tokens)
    row = (3 * CHUNK - 1) // length  # it holds the last token of zarr chunk 2
    PackedRows(train, length).fill(np.array([row]), RowWindow(1, length, False), chunks)
    expected = train.encoded_tokens[3 * CHUNK - 1]
    monkeypatch.delattr(StoredElements, "_decode")
    monkeypatch.delattr(StoredElements, "last_of_chunk")
    assert chunks.last_token(2) == expected


@pytest.mark.parametrize(
    "layout", [ArrayLayout.create(2, CHUNK), ArrayLayout.create(3, CHUNK, 4 * CHUNK)], ids=str
)
def test_last_tokens_are_read_by_themselves(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch, layout: ArrayLayout
) -> None:
    train = flat_tokens.open(
        make_dataset(random_sequences(7, 40, longest=12, largest_id=27), layout=layout)
    ).train
    expected = train.encoded_tokens[:][CHUNK - 1 :: CHUNK]
    monkeypatch.delattr(StoredElements, "_decode")
    chunks = ChunkReader(train.encoded_tokens)
    assert [chunks.last_token(index) for index in range(len(expected))] == expected.tolist()


@pytest.mark.parametrize(
    "compressor", [numcodecs.Zstd(1), numcodecs.Zstd(1, checksum=True), numcodecs.LZ4()], ids=str
)
def test_last_tokens_of_files_of_others(make_dataset: Any, compressor: Any) -> None:
    """They are decoded for it."""
    root = make_dataset([[1, 2, 3], [4] * 30], layout=ArrayLayout.create(2, CHUNK))
    (root / "manifest.json").unlink()
    folder = root / "train/encoded_tokens"
    expected = flat_tokens.open(root).train.encoded_tokens[:]
    zarray = json.loads((folder / ".zarray").read_text())
    (folder / ".zarray").write_text(json.dumps(zarray | {"compressor": compressor.get_config()}))
    for file in folder.glob("[0-9]*"):
        values = numcodecs.Zstd().decode(file.read_bytes())
        file.write_bytes(compressor.encode(values))
    chunks = ChunkReader(flat_tokens.open(root).train.encoded_tokens)
    assert [chunks.last_token(index) for index in range(4)] == expected[CHUNK - 1 :: CHUNK].tolist()


def test_a_last_token_that_is_damaged(make_dataset: Any) -> None:
    """An id too large is told of at once, another by the checksum when the zarr chunk is decoded."""
    root = make_dataset([[1] * 32], layout=ArrayLayout.create(2, CHUNK))
    file = root / "train/encoded_tokens/0"
    payload = bytearray(file.read_bytes())
    assert payload[-8:-4] == bytes([2, 0, 0, 0])  # the last block, in front of the checksum
    for byte in (0, 200):
        payload[-8] = byte
        file.write_bytes(payload)
        chunks = ChunkReader(flat_tokens.open(root).train.encoded_tokens)
        if byte == 0:
            assert chunks.last_token(0) == 0
        with pytest.raises(DatasetError, match="encoded_tokens/0"):
            chunks.load(0) if byte == 0 else chunks.last_token(0)


def test_a_last_token_is_compared(make_dataset: Any) -> None:
    """It is remembered where only the rows in front of it were asked for, and compared."""
    root = make_dataset([[1] * 7 + [9] + [1] * 24], layout=ArrayLayout.create(2, CHUNK))
    (root / "manifest.json").unlink()
    (root / "train/.zattrs").write_text('{"max_token_id": 5}')
    train = flat_tokens.open(root).train
    chunks = ChunkReader(train.encoded_tokens)
    window = RowWindow(1, 4, False)
    source = PackedRows(train, 4)
    source.fill(
        np.array([0]), window, chunks
    )  # tokens 0 to 3 of the first zarr chunk, which is decoded whole
    assert window.tokens[int(window.firsts[0])] & 1
    with pytest.raises(DatasetError, match="ID of token 7 .*max_token_id"):
        source.fill(np.array([2]), window, chunks)
