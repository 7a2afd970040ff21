"""The framework-independent rules for labels that all adapters share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_datasets import from_sequences

from flat_tokens.arguments import shown
from flat_tokens.errors import ArgumentError
from flat_tokens.fields import NAMES, OF_SEGMENTS, Fields
from flat_tokens.format import inputs_and_targets
from flat_tokens.rows.batch import Batch


def a_batch(lengths: list[int] | None = None) -> Batch:
    """Return [1, 2], [3, 4, 5], [6, 7, 8] in rows of 4; the second row starts within a sequence."""
    encoded = from_sequences([[1, 2], [3, 4, 5], [6, 7, 8]])[0]
    inputs, targets = (ids.reshape(2, 4).astype(np.int32) for ids in inputs_and_targets(encoded))
    is_start = (encoded & 1).astype(np.bool_).reshape(2, 4)
    return Batch(inputs, targets, is_start, None if lengths is None else np.array(lengths, np.int32))


@pytest.mark.parametrize(
    ("ignore", "lengths", "labels", "targets"),
    [
        (True, None, [[-100, 2, -100, 4], [5, -100, 7, 8]], [[1, 2, 3, 4], [5, 6, 7, 8]]),
        (False, None, [[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 2, 3, 4], [5, 6, 7, 8]]),
        (True, [4, 3], [[-100, 2, -100, 4], [5, -100, 7, -100]], [[1, 2, 3, 4], [5, 6, 7, -100]]),
        (False, [4, 3], [[1, 2, 3, 4], [5, 6, 7, -100]], [[1, 2, 3, 4], [5, 6, 7, -100]]),
    ],
)
def test_labels_are_unshifted(ignore: bool, lengths: Any, labels: Any, targets: Any) -> None:
    batch = a_batch(lengths)
    unshifted = Fields(("input_ids", "labels"), ignore).make(batch, np.int64)
    assert unshifted["input_ids"].tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert unshifted["labels"].tolist() == labels
    assert not np.shares_memory(unshifted["input_ids"], unshifted["labels"])
    shifted = Fields(("inputs", "targets"), ignore).make(batch, np.int32)
    assert shifted["inputs"].tolist() == [[0, 1, 0, 3], [4, 0, 6, 7]]
    assert shifted["targets"].tolist() == targets
    assert batch.targets.tolist() == targets  # a Batch has the same targets as the adapters
    assert batch.ids.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]  # the batch itself is unchanged


def test_only_named_fields_are_made() -> None:
    batch = a_batch()
    for name in NAMES:
        if name not in OF_SEGMENTS:
            Fields((name,)).make(batch, np.int64)
    assert not {"segment_ids", "positions"} & set(vars(batch))


@pytest.mark.parametrize(
    ("names", "named"),
    [
        (("labels", "masks"), "'masks'"),
        (("labels", 3), "3"),
        ("labels", "'labels'"),
        (7, "7"),
        ((), r"\(\)"),
        (("labels", "labels"), "'labels'"),
        (("inputs", "labels"), "labels and inputs"),
        (("input_ids", "targets"), "input_ids and targets"),
    ],
    ids=shown,
)
def test_wrong_names(names: Any, named: str) -> None:
    with pytest.raises(ArgumentError, match=f"^fields: .*{named}"):
        Fields(names)
    with pytest.raises(ArgumentError, match="ignore_first_labels"):
        Fields(("labels",), "no")  # type: ignore[arg-type]
