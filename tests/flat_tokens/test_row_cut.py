"""Encoded rows to inputs or labels, targets and start flags: the native loops equal their definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flat_tokens import _core
from flat_tokens.format import inputs_and_targets
from flat_tokens.rows.cut import RowCut

LENGTHS = [1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1000, 3000]
TOKENS = 3000


def drawn_rows(length: int, largest: int) -> tuple[Any, Any]:
    """Encoded tokens, and where some rows begin."""
    generator = np.random.default_rng(length)
    encoded = generator.integers(0, largest, TOKENS).astype(np.uint32) << np.uint32(1)
    encoded |= (generator.random(TOKENS) < 0.2).astype(np.uint32)
    encoded[0] |= 1
    last = TOKENS - length
    return encoded, np.array([0, *generator.integers(0, last + 1, 9), last, 0])


def filled(count: int, length: int, dtype: str) -> list[Any]:
    shape = (count, length)
    return [np.full(shape, 7, dtype), np.full(shape, 7, dtype), np.ones(shape, np.bool_)]


@pytest.mark.parametrize("dtype", ["uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_rows_are_shifted_and_flagged(dtype: str, length: int) -> None:
    encoded, firsts = drawn_rows(length, 2**16 if dtype == "uint16" else 2**31)
    columns = firsts[:, None] + np.arange(length)
    expected_inputs, expected_targets = (values[columns] for values in inputs_and_targets(encoded))
    for start_id in (0, 65535):
        inputs, targets, is_start = outputs = filled(len(firsts), length, dtype)
        _core.cut_rows(encoded, firsts, length, start_id, *outputs)
        assert np.array_equal(is_start, encoded[columns] & 1)
        assert np.array_equal(inputs, np.where(is_start, start_id, expected_inputs))
        assert np.array_equal(targets, expected_targets)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_labels_are_the_ids_except_at_starts(dtype: str, length: int) -> None:
    encoded, firsts = drawn_rows(length, 2**31)
    labels, ids, is_start = outputs = filled(len(firsts), length, dtype)
    _core.cut_labels(encoded, firsts, length, -100, *outputs)
    rows = encoded[firsts[:, None] + np.arange(length)].astype(np.int64)
    assert np.array_equal(ids, rows >> 1)
    assert np.array_equal(is_start, rows & 1)
    assert np.array_equal(labels, np.where(rows & 1, -100, rows >> 1))


def test_kernels_check_their_arguments() -> None:
    tokens, offsets, flags = np.zeros(8, np.uint32), np.arange(9), np.zeros(4, np.bool_)

    def cut(first: int = 1, length: int = 4, dtype: Any = np.int32, size: int = 4, flag: Any = flags) -> None:
        _core.cut_rows(tokens, np.array([first]), length, 0, np.zeros(size, dtype), np.zeros(4, dtype), flag)

    def find(shortest: int, block: int, farthest: int, room: int = 20, bits: int = 14) -> None:
        found, table = np.empty((room, 4), np.uint32), np.empty(2**bits, np.uint32)
        _core.find_matches(np.zeros(20, np.uint32), shortest, block, farthest, found, table)

    fixed = np.zeros(4, np.bool_)
    fixed.flags.writeable = False
    wrong: list[Any] = [
        *[lambda first=first: cut(first) for first in (5, -1, 2**62)],
        *[lambda length=length: cut(length=length) for length in (0, 9)],
        *[lambda size=size: cut(size=size) for size in (3, 5)],
        *[lambda dtype=dtype: cut(dtype=dtype) for dtype in (np.int8, "S3")],
        *[lambda flag=flag: cut(flag=flag) for flag in (np.zeros(5, np.bool_), fixed)],
        lambda: _core.cut_labels(
            tokens, np.array([1]), 4, 0, np.zeros(4, np.uint16), np.zeros(4, np.uint16), flags
        ),
        lambda: _core.decode_ids(tokens, np.empty(9, np.uint32), None),
        lambda: _core.decode_ids(tokens, np.empty(8, np.uint32), np.empty(9, np.bool_)),
        lambda: _core.next_fit(offsets, 0, 4, np.zeros(9, np.int64)),
        *[
            lambda size=size, keys=keys: _core.permute(np.arange(6, dtype="u8"), size, np.zeros(keys, "u8"))
            for size, keys in ((0, 1), (5, 1), (6, 0), (6, 4))
        ],
        *[lambda given=given: find(*given) for given in ((4, 8, 8), (2, 0, 8), (2, 8, 0))],
        *[lambda given=given: find(2, 8, 8, *given) for given in ((12,), (20, 13))],
    ]
    for call in wrong:
        with pytest.raises((ValueError, BufferError)):
            call()
    cut()
    find(2, 8, 8)


def test_batches_of_a_cut_do_not_share_memory() -> None:
    cut = RowCut(4, np.dtype(np.int32))
    encoded = np.arange(1, 41, dtype=np.uint32)
    first = cut.batch(encoded, np.array([0, 8]))
    second = cut.batch(encoded, np.array([16, 20]))
    assert not np.shares_memory(first.inputs, second.inputs)
    assert first.targets.tolist() == [[0, 1, 1, 2], [4, 5, 5, 6]]
    kept = second.targets[1:]
    address = first.inputs.ctypes.data, first.targets.ctypes.data
    del first, second
    third = cut.batch(encoded, np.array([0, 8]))
    assert kept.tolist() == [[10, 11, 11, 12]]
    assert {third.inputs.ctypes.data, third.targets.ctypes.data} == set(address)
