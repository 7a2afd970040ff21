"""Rows of one sequence each: damaged seq_starts are reported before they are used to read tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import Loader, writer
from flat_tokens.errors import DatasetError
from flat_tokens.storage.layout import ArrayLayout


def wrong(make_dataset: Any, changes: dict[int, int]) -> Any:
    """Return a split of 12 sequences of two tokens, with wrong starts except for the first and the last."""
    root: Path = make_dataset([[1, 2]] * 12, layout=ArrayLayout.create(2, 16))
    starts = np.arange(0, 26, 2, dtype=np.uint64)
    for at, value in changes.items():
        starts[at] = value
    layout = ArrayLayout.create(2, 16)
    for first in range(0, len(starts), layout.cuts("seq_starts")[1]):
        writer.write_run(
            root, "train", layout, "seq_starts", first, starts[first : first + layout.cuts("seq_starts")[1]]
        )
    (root / "manifest.json").unlink()
    return flat_tokens.open(root).train


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        pytest.param({}, "", id="right"),
        pytest.param({3: 4}, r"train/seq_starts\[3\]: ", id="equal"),
        pytest.param({3: 3}, r"train/seq_starts\[3\]: ", id="falling"),
        pytest.param({2: 5, 3: 4}, r"train/seq_starts\[3\]: ", id="swapped"),
        pytest.param({6: 24}, r"train/seq_starts\[7\]: ", id="at the end of the tokens"),
        pytest.param({6: 11}, "", id="one token"),
        pytest.param({6: 25}, r"train/seq_starts\[6\]: ", id="after the end"),
        pytest.param({6: 2**62}, r"train/seq_starts\[6\]: ", id="far after"),
    ],
)
def test_starts_that_cannot_be(make_dataset: Any, changes: dict[int, int], where: str) -> None:
    loader = Loader(
        wrong(make_dataset, changes), 4, 6, packed=False, long_sequences="truncate", shuffle=False
    )
    if not where:
        lengths = loader.batch(0).lengths
        assert lengths is not None
        assert lengths.tolist() == [2, 2, 2, 2, 2, min(4, changes.get(6, 12) - 10)]
        return
    for call in (lambda: loader.batch(0), lambda: Loader(loader.array, 4, 6, packed=False)):
        with pytest.raises(DatasetError, match=where) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_losses_as_a_line(make_dataset: Any) -> None:
    train = flat_tokens.open(make_dataset([[1] * 7, [1, 2], [1] * 3], name="l")).train
    assert str(Loader(train, 4, 2, packed=False, long_sequences="truncate").losses()) == (
        "9 of 12 tokens in 3 rows; 3 truncated, 0 in the tail, 1 sequences longer than a row, "
        "25.0% padding, 1 rows left out of each epoch"
    )
    split = Loader(train, 4, 2, packed=False).losses()
    assert (split.tokens_in_rows, split.rows, split.padding, split.sequences_cut) == (12, 4, 4, 1)
