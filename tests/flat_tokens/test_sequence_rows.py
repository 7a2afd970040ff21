"""Rows of one sequence each: starts that cannot be are told before a token is read by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import writer
from flat_tokens.errors import DatasetError
from flat_tokens.rows import sequence_rows
from flat_tokens.rows.sequence_rows import Losses, SequenceRows
from flat_tokens.storage.layout import ArrayLayout

ROWS = np.arange(6, dtype=np.int64)


def wrong(make_dataset: Any, changes: dict[int, int]) -> Any:
    """A split of 12 sequences of two tokens. Some of its starts are changed, the first and the last are right."""
    root: Path = make_dataset([[1, 2]] * 12, layout=ArrayLayout.create(2, 16))
    starts = np.arange(0, 26, 2, dtype=np.uint64)
    for at, value in changes.items():
        starts[at] = value
    layout = ArrayLayout.create(2, 16)
    for first in range(0, len(starts), layout.write_unit_starts):
        writer.write_starts(root, "train", layout, first, starts[first : first + layout.write_unit_starts])
    (root / "manifest.json").unlink()
    return flat_tokens.open(root).train


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        pytest.param({}, "", id="right"),
        pytest.param({3: 4}, r"train/seq_starts\[3\]: ", id="equal"),
        pytest.param({3: 3}, r"train/seq_starts\[3\]: ", id="falling"),
        pytest.param({2: 5, 3: 4}, r"train/seq_starts\[3\]: ", id="swapped"),
        pytest.param({6: 24}, "", id="at the end of the tokens"),
        pytest.param({6: 11}, "", id="one token"),
        pytest.param({6: 25}, r"train/seq_starts\[6\]: ", id="behind the end"),
        pytest.param({6: 2**62}, r"train/seq_starts\[6\]: ", id="far behind"),
    ],
)
def test_starts_that_cannot_be_are_told(make_dataset: Any, changes: dict[int, int], where: str) -> None:
    rows = SequenceRows(wrong(make_dataset, changes), 4, "truncate", 0)
    if not where:
        starts, ends, is_first = rows.ranges(ROWS)
        assert starts.tolist() == [0, 2, 4, 6, 8, 10]
        assert ends.tolist() == [2, 4, 6, 8, 10, min(14, changes.get(6, 12))]
        assert is_first.all()
        return
    with pytest.raises(DatasetError, match=where) as caught:
        rows.ranges(ROWS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("group", [1, 2, 5, 1024])
def test_starts_are_looked_at_group_by_group_where_rows_are_split(
    make_dataset: Any, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence_rows, "GROUP", group)
    with pytest.raises(DatasetError):
        SequenceRows(wrong(make_dataset, {6: 25}), 4, "split", 0)
    with pytest.raises(DatasetError, match=r"seq_starts\[3\]"):
        SequenceRows(wrong(make_dataset, {3: 4}), 4, "split", 0)


def test_losses_as_a_line() -> None:
    assert str(Losses(1234, 1000, 200, 34, 3000, 40, 5, 2)) == (
        "1,000 of 1,234 tokens in 40 rows; 200 truncated, 34 in the tail, 5 sequences longer than a row, "
        "75.0% padding, 2 rows left out of each epoch"
    )
