"""Rows brought into windows: the last tokens of zarr chunks are remembered, and compared before they are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.errors import DatasetError
from flat_tokens.rows.narrow_window import NarrowWindow
from flat_tokens.rows.row_source import ChunkReader, PackedRows
from flat_tokens.rows.row_window import RowWindow
from flat_tokens.storage.chunk_source import ChunkSource
from flat_tokens.storage.layout import ArrayLayout

CHUNK = 8
KINDS = [pytest.param(lambda length: RowWindow(1, length, False), id="wide")]
if NarrowWindow.holds(27):
    KINDS.append(pytest.param(lambda length: NarrowWindow(1, length), id="narrow"))


@pytest.mark.parametrize("length", [CHUNK, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_last_tokens_are_remembered(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch, kind: Any, length: int
) -> None:
    sequences = random_sequences(7, 40, longest=12, largest_id=27)
    train = flat_tokens.open(make_dataset(sequences, layout=ArrayLayout.create(2, CHUNK))).train
    chunks = ChunkReader(train.encoded_tokens)
    row = (3 * CHUNK - 1) // length  # it holds the last token of zarr chunk 2
    PackedRows(train, length).fill(np.array([row]), kind(length), chunks)
    expected = train.encoded_tokens[3 * CHUNK - 1]
    monkeypatch.delattr(ChunkSource, "decode")
    assert chunks.last_token(2) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_last_token_is_compared(make_dataset: Any, kind: Any) -> None:
    """It is remembered where only the rows in front of it were asked for, and compared."""
    root = make_dataset([[1] * 7 + [9] + [1] * 24], layout=ArrayLayout.create(2, CHUNK))
    (root / "manifest.json").unlink()
    (root / "train/.zattrs").write_text('{"max_token_id": 5}')
    train = flat_tokens.open(root).train
    chunks = ChunkReader(train.encoded_tokens)
    window = kind(4)
    source = PackedRows(train, 4)
    source.fill(
        np.array([0]), window, chunks
    )  # tokens 0 to 3 of the first zarr chunk, which is decoded whole
    assert window.is_start(int(window.firsts[0]))
    with pytest.raises(DatasetError, match="id 9 at position 7 is above max_token_id 5"):
        source.fill(np.array([2]), window, chunks)
