"""Rows in two flat arrays."""

from __future__ import annotations

import numpy as np
import pytest

from bpe.ragged import Ragged

ROWS = [[5, 6], [], [7]]


def test_rows():
    ragged = Ragged(np.array([5, 6, 7], np.uint32), np.array([0, 2, 2, 3], np.uint64))
    assert len(ragged) == 3
    assert ragged.tolist() == [row.tolist() for row in ragged] == ROWS
    assert ragged[-1].tolist() == [7]
    assert ragged.lengths.tolist() == [2, 0, 1]
    for row in (3, -4):
        with pytest.raises(IndexError, match=f"^row: .*{row}"):
            ragged[row]


def test_from_rows_and_concatenate():
    ragged = Ragged.from_rows([np.array(row, np.uint32) for row in ROWS])
    assert ragged.tolist() == ROWS
    both = Ragged.concatenate([ragged, ragged])
    assert both.tolist() == ROWS + ROWS
    assert both.tokens.dtype == np.uint32
    assert both.offsets.dtype == np.uint64
    for empty in (Ragged.from_rows([]), Ragged.concatenate([])):
        assert (len(empty), empty.tolist(), empty.offsets.tolist()) == (0, [], [0])
