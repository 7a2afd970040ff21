"""Rows of any length and type: inputs, targets, labels and start flags equal their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import ArgumentError, Loader
from flat_tokens.grain import BatchSource

LENGTHS = [1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1000, 3000]


@pytest.mark.parametrize("dtype", ["uint16", "int32", "uint32", "int64"])
def test_rows_equal_their_definition(dtype: str, make_dataset: Any, random_sequences: Any) -> None:
    largest = 2**16 - 1 if dtype == "uint16" else 2**31 - 1
    train = flat_tokens.open(make_dataset(random_sequences(3, 900, 20, largest))).train
    encoded = train.encoded_tokens[:].astype(np.int64)
    ids, is_start = encoded >> 1, (encoded & 1).astype(bool)
    for length in LENGTHS:
        loader = Loader(train, length, 2, dtype=dtype, start_id=largest)
        held = [loader.batch(step) for step in (0, 0, 1, 2**40)]
        for step, batch in zip((0, 0, 1, 2**40), held, strict=True):
            columns = loader.rows_of(step)[:, None] * length + np.arange(length)
            assert batch.inputs.dtype == batch.targets.dtype == dtype
            assert np.array_equal(batch.is_seq_start, is_start[columns])
            assert np.array_equal(batch.targets, ids[columns])
            assert np.array_equal(batch.inputs, np.where(is_start[columns], largest, ids[columns - 1]))
        columns = loader.rows_of(0)[:, None] * length + np.arange(length)
        if not dtype.startswith("u"):
            found = BatchSource(loader, fields=("input_ids", "labels"))[0]
            assert np.array_equal(found["input_ids"], ids[columns])
            assert np.array_equal(found["labels"], np.where(is_start[columns], -100, ids[columns]))


def test_an_id_that_the_type_cannot_hold(make_dataset: Any) -> None:
    train = flat_tokens.open(make_dataset([[1, 65_536]])).train
    with pytest.raises(ArgumentError, match="max_token_id"):
        Loader(train, 2, 1, dtype="uint16")
