"""Encoded rows to inputs, targets and flags: the native loop, the numpy loop and results by hand are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flat_tokens.format import inputs_and_targets
from flat_tokens.rows.cut import RowCut, cut_labels_with_numpy, cut_with_numpy

core: Any = pytest.importorskip("flat_tokens._core")
DTYPES = ("uint16", "int32", "uint32", "int64")


def cut_all(cut: Any, encoded: Any, firsts: Any, length: int, dtype: str, start_id: int = 0) -> list[Any]:
    shape = (len(firsts), length)
    out = [np.full(shape, 7, dtype), np.full(shape, 7, dtype), np.ones(shape, np.bool_)]
    cut(encoded, firsts, length, start_id, *out)
    return out


@pytest.mark.parametrize("cut", [cut_with_numpy, core.cut_rows], ids=["numpy", "core"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1000])
def test_rows_are_shifted_and_flagged(cut: Any, dtype: str, length: int) -> None:
    generator = np.random.default_rng(length)
    largest = 2**16 if dtype == "uint16" else 2**31
    encoded = generator.integers(0, largest, 3000).astype(np.uint32) << np.uint32(1)
    encoded |= (generator.random(3000) < 0.2).astype(np.uint32)
    encoded[0] |= 1
    firsts = np.concatenate([[0], generator.integers(0, 3000 - length + 1, 9), [3000 - length, 0]])
    all_inputs, all_targets = inputs_and_targets(encoded)
    inputs, targets, is_start = cut_all(cut, encoded, firsts, length, dtype)
    for row, first in enumerate(firsts.tolist()):
        part = slice(first, first + length)
        assert np.array_equal(inputs[row], all_inputs[part])
        assert np.array_equal(targets[row], all_targets[part])
        assert np.array_equal(is_start[row], encoded[part] & 1)
    other = cut_all(cut, encoded, firsts, length, dtype, 65535)
    assert np.array_equal(other[0], np.where(is_start, np.array(65535, dtype), inputs))
    assert np.array_equal(other[1], targets)


@pytest.mark.parametrize("cut", [cut_labels_with_numpy, core.cut_labels], ids=["numpy", "core"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1000])
def test_labels_are_the_ids_except_at_starts(cut: Any, dtype: str, length: int) -> None:
    generator = np.random.default_rng(length)
    encoded = generator.integers(0, 2**32, 3000).astype(np.uint32)
    firsts = np.concatenate([[0], generator.integers(0, 3000 - length + 1, 9), [3000 - length, 0]])
    shape = (len(firsts), length)
    labels, ids, is_start = np.full(shape, 7, dtype), np.full(shape, 7, dtype), np.ones(shape, np.bool_)
    cut(encoded, firsts, length, -100, labels, ids, is_start)
    rows = np.stack([encoded[first : first + length] for first in firsts.tolist()]).astype(np.int64)
    assert np.array_equal(ids, rows >> 1)
    assert np.array_equal(is_start, rows & 1)
    assert np.array_equal(labels, np.where(rows & 1, -100, rows >> 1))


def test_core_makes_no_labels_of_16_bits() -> None:
    outputs = [np.zeros(4, np.uint16), np.zeros(4, np.uint16), np.zeros(4, np.bool_)]
    with pytest.raises(ValueError, match="a label must have 4 or 8 bytes, got 2"):
        core.cut_labels(np.zeros(8, np.uint32), np.array([1]), 4, -100, *outputs)


def test_a_label_cut_fills_labels_instead_of_inputs() -> None:
    cut = RowCut(4, np.dtype(np.int64), is_labelled=True)
    encoded = np.array([3, 4, 7, 8, 10, 13, 14, 16], dtype=np.uint32)
    batch = cut.batch(encoded, np.array([0, 4]))
    assert batch.cut_labels is not None
    assert batch.cut_labels.tolist() == [[-100, 2, -100, 4], [5, -100, 7, 8]]
    assert batch.targets.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


@pytest.mark.parametrize("size", [1, 2, 3, 64])
def test_core_and_numpy_agree_on_whole_arrays_and_none(size: int) -> None:
    for first in (1, 2):  # with and without a preceding start
        encoded = np.arange(first, first + size, dtype=np.uint32)
        for length in {1, size}:
            for firsts in (np.array([0, size - length]), np.zeros(0, np.int64)):
                expected = cut_all(cut_with_numpy, encoded, firsts, length, "int32")
                found = cut_all(core.cut_rows, encoded, firsts, length, "int32")
                assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 0}, r"length must be in \[1, 8\], got 0"),
        ({"length": 9}, r"length must be in \[1, 8\], got 9"),
        ({"firsts": np.array([5])}, r"firsts\[0\] must be in \[0, 4\], got 5"),
        ({"firsts": np.array([-1])}, r"firsts\[0\] must be in \[0, 4\], got -1"),
        ({"firsts": np.array([0, 2**62])}, r"firsts\[1\] must be in \[0, 4\], got 4611686018427387904"),
        ({"is_start": np.zeros(5, np.bool_)}, "is_start has 5 bytes, it must have 4"),
        ({"targets": np.zeros(5, np.int32)}, "targets has 20 bytes, it must have 16"),
        ({"inputs": np.zeros(4, np.int8), "targets": np.zeros(4, np.int8)}, "2, 4 or 8 bytes, got 1"),
        (
            {"inputs": np.zeros(9, np.int16), "targets": np.zeros(9, np.int16)},
            "has 18 bytes, it must have 16",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_core_checks_its_arguments(changes: dict[str, Any], message: str) -> None:
    arguments = {
        "encoded": np.zeros(8, np.uint32),
        "firsts": np.array([1]),
        "length": 4,
        "start_id": 0,
        "inputs": np.zeros(4, np.int32),
        "targets": np.zeros(4, np.int32),
        "is_start": np.zeros(4, np.bool_),
        **changes,
    }
    if "firsts" in changes and len(changes["firsts"]) == 2:
        arguments |= {"inputs": np.zeros(8, np.int32), "targets": np.zeros(8, np.int32)}
        arguments["is_start"] = np.zeros(8, np.bool_)
    with pytest.raises(ValueError, match=message):
        core.cut_rows(**arguments)


def test_core_never_writes_to_read_only_arrays() -> None:
    fixed = np.zeros(4, np.int32)
    fixed.flags.writeable = False
    with pytest.raises((BufferError, ValueError), match="read-only"):
        core.cut_rows(
            np.zeros(8, np.uint32), np.array([1]), 4, 0, fixed, np.zeros(4, np.int32), np.zeros(4, bool)
        )


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
