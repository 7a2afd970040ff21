"""Segments from start flags and lengths: bounds, IDs, positions and masks equal a naive count over rows and packs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import ArgumentError, Loader, Mixture, PackedSequences
from flat_tokens.rows import segments
from flat_tokens.rows.batch import Batch
from flat_tokens.storage.layout import ArrayLayout


def check(batch: Batch) -> None:
    """Check all segment data one token at a time, from the flags and lengths alone."""
    rows, length = batch.targets.shape
    lengths = np.full(rows, length) if batch.lengths is None else batch.lengths
    bounds, ids, positions = [], np.zeros((rows, length), int), np.zeros((rows, length), int)
    for row in range(rows):
        number = place = 0
        for at in range(length):
            is_begin = at == 0 or bool(batch.is_seq_start[row, at])
            if is_begin or at == lengths[row]:
                bounds.append(row * length + at)
            number += is_begin
            place = 0 if is_begin else place + 1
            ids[row, at] = number if at < lengths[row] else 0
            positions[row, at] = place
    bounds.append(rows * length)
    assert batch.cu_seqlens.dtype == batch.segment_ids.dtype == batch.positions.dtype == np.int32
    assert batch.cu_seqlens.tolist() == bounds
    assert batch.max_seqlen == max(np.diff(bounds), default=0)
    assert batch.segment_ids.tolist() == ids.tolist()
    assert batch.positions.tolist() == positions.tolist()
    mask = batch.mask()
    for row in range(rows):
        for query in range(length):
            same = (ids[row] == ids[row, query]) & (ids[row] > 0) & (np.arange(length) <= query)
            same[query] = True
            assert mask[row, query].tolist() == same.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_random_flags(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, length = int(rng.integers(0, 5)), int(rng.integers(1, 9))
    lengths = rng.integers(0, length + 1, rows).astype(np.int32) if seed % 2 else None
    is_start = rng.random((rows, length)) < rng.random()
    if lengths is not None:
        is_start[np.arange(length) >= lengths[:, None]] = False
    ids = np.zeros((rows, length), np.int32)
    check(Batch(ids, ids, is_start, lengths))


def test_too_many_tokens() -> None:
    flags = np.broadcast_to(np.zeros((1, 1), np.bool_), (2**16, 2**15))
    with pytest.raises(ArgumentError, match="cu_seqlens"):
        segments.segment_bounds(flags, None)


@pytest.fixture
def train(make_dataset: Any, random_sequences: Any) -> Any:
    layout = ArrayLayout.create(2, 16)
    return flat_tokens.open(make_dataset(random_sequences(3, 160, longest=8), layout=layout)).train


def test_start_ids(train: Any) -> None:
    packed = PackedSequences(train, 10, 3)
    for source in (train, packed):
        for make in (
            lambda start, source=source: Loader(source, 10, 4, start_id=start),
            lambda start, source=source: Mixture([source], [1], 10, 4, start_id=start),
        ):
            plain, marked = make(0).batch(2), make(99).batch(2)
            assert np.array_equal(marked.targets, plain.targets)
            assert np.array_equal(marked.inputs, np.where(plain.is_seq_start, 99, plain.inputs))
    with pytest.raises(ArgumentError, match="start_id"):
        Loader(train, 10, 4, start_id=70_000, dtype="uint16")
    with pytest.raises(ArgumentError, match=r"start_id.*\[0"):
        Loader(train, 10, 4, start_id=-1)
