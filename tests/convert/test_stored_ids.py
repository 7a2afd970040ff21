"""Ids as a dataset stores them: put apart by split, nothing lost unseen, doubled with flags where sequences start."""

from __future__ import annotations

import numpy as np
import pytest

from convert import _core
from flat_tokens.format import encode_tokens

SIZES = [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 1023, 1024, 1025]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("size", SIZES)
def test_flag_ids_is_the_formats_encoding(size: int, dtype: type) -> None:
    rng = np.random.default_rng(size)
    ids = rng.integers(0, 2**16 if dtype is np.uint16 else 2**31, size).astype(dtype)
    starts = np.flatnonzero(rng.random(size) < 0.3).astype(np.uint64)
    starts = np.unique(np.append(starts, np.zeros(min(size, 1), dtype=np.uint64)))
    expected = encode_tokens(ids, np.append(starts, np.uint64(size)))
    for first in (0, 5, 2**40):
        out = np.full(size + 1, 9, dtype=np.uint32)
        _core.flag_ids(ids, starts + np.uint64(first), first, out)
        assert np.array_equal(out[:size], expected)
        assert out[size] == 9


def test_what_does_not_fit_is_refused() -> None:
    ids, out = np.arange(3, dtype=np.uint16), np.empty(3, dtype=np.uint32)
    for start in (9, 13, 2**64 - 1):
        with pytest.raises(ValueError, match=rf"starts\[0\].*{start}.*\[10"):
            _core.flag_ids(ids, np.array([start], dtype=np.uint64), 10, out)
    with pytest.raises(ValueError, match="out"):
        _core.flag_ids(ids, np.array([], dtype=np.uint64), 0, out[:2])


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("count", [0, 1, 2, 63, 200])
@pytest.mark.parametrize("ends", [(None, None), (None, 70_000), (3, None), (3, 4)], ids=str)
def test_rows_that_are_dealt_out_keep_their_order(
    ends: tuple[int | None, int | None], count: int, share: float, dtype: type
) -> None:
    rng = np.random.default_rng([count, int(share * 100)])
    rows = [rng.integers(0, 2**32, rng.integers(0, 20), dtype=np.uint32) for _ in range(count)]
    marked = rng.random(count) < share
    offsets = np.cumsum([3, *map(len, rows)], dtype=np.uint64)
    ids = np.concatenate([np.arange(3, dtype=np.uint32), *rows])
    front, back = ([] if end is None else [end] for end in ends)
    around = [[*front, *row.tolist(), *back] for row in rows if len(row)]
    out = np.full(sum(map(len, around)) + count * 2 + 1, 7, dtype=dtype)
    starts = np.full(count + 1, 9, dtype=np.uint64)
    stats = _core.partition_by_split(ids, offsets, marked, (2**40, 5), out, starts, *ends)
    expected_ids: list[int] = []
    expected_starts: list[int] = []
    for which, before in enumerate((2**40, 5)):
        filled = [mark for row, mark in zip(rows, marked.tolist(), strict=True) if len(row)]
        own = [row for row, mark in zip(around, filled, strict=True) if mark == which]
        flat = [id_ for row in own for id_ in row]
        longest = max(map(len, own), default=0)
        # Of 32 bits the highest is a mark: not so of 16, where it would be lost.
        marks = 0 if dtype is np.uint16 else 1 << 31
        highest = max((id_ & ~marks for id_ in flat), default=0)
        assert stats[which] == (len(flat), len(own), longest, highest)
        expected_ids += flat
        expected_starts += np.cumsum([before, *map(len, own)])[:-1].tolist()
    assert np.array_equal(out[: len(expected_ids)], np.array(expected_ids, dtype=np.uint32).astype(dtype))
    assert starts[: len(expected_starts)].tolist() == expected_starts
    assert (out[len(expected_ids) :] == 7).all()
    assert starts[-1] == 9


def test_rows_that_do_not_fit_are_refused() -> None:
    ids, out, starts = (
        np.arange(4, dtype=np.uint32),
        np.empty(4, dtype=np.uint16),
        np.empty(2, dtype=np.uint64),
    )
    offsets, marked = np.array([0, 2, 4], dtype=np.uint64), np.array([True, False])
    with pytest.raises(ValueError, match="out"):
        _core.partition_by_split(ids, offsets, marked, (0, 0), out[:3], starts)
    with pytest.raises(ValueError, match="out"):
        _core.partition_by_split(ids, offsets, marked, (0, 0), out, starts, back=1)
    with pytest.raises(ValueError, match="starts"):
        _core.partition_by_split(ids, offsets, marked, (0, 0), out, starts[:1])
    with pytest.raises(ValueError, match="marked"):
        _core.partition_by_split(ids, offsets, marked[:1], (0, 0), out, starts)
    with pytest.raises(ValueError, match="offsets end at 4, beyond the buffer of 3 ids"):
        _core.partition_by_split(ids[:3], offsets, marked, (0, 0), out, starts)
    with pytest.raises(TypeError):
        _core.partition_by_split(ids, offsets, marked, (0, 0), out.astype(np.uint64), starts)  # type: ignore[arg-type]
