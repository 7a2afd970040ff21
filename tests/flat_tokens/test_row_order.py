"""Every epoch has each row at most once, whatever the sizes; hosts see parts of the same batches."""

from __future__ import annotations

import numpy as np
import pytest

from flat_tokens.errors import ArgumentError
from flat_tokens.rows.row_order import RowOrder


def epoch_rows(order: RowOrder, epoch: int) -> np.ndarray:
    step, stop, batches = epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch, []
    while step < stop:
        window = order.window_at(step)
        rows = order.window_order(window, 0, order.streams)
        assert rows.shape == (window.step_count, order.streams, order.rows_per_stream)
        parts = [order.window_order(window, s, s + 1) for s in range(order.streams)]
        assert np.array_equal(np.concatenate(parts, axis=1), rows)
        for at in {0, window.step_count // 2, window.step_count - 1}:
            assert np.array_equal(
                order.window_order(window, 0, order.streams, (at, at + 1)), rows[at : at + 1]
            )
        batches.append(rows.reshape(window.step_count, order.batch_size))
        step += window.step_count
    return np.concatenate(batches)


@pytest.mark.parametrize("row_count", [1, 63, 64, 65, 127, 600])
@pytest.mark.parametrize(("batch_size", "streams"), [(1, 1), (6, 2), (8, 8), (64, 8)])
@pytest.mark.parametrize("block_rows", [3, 16, 300])
def test_each_row_once_an_epoch(row_count: int, batch_size: int, streams: int, block_rows: int) -> None:
    if row_count < batch_size:
        with pytest.raises(ArgumentError, match=f"{row_count} rows do not fill a batch of {batch_size}"):
            RowOrder.create(row_count, batch_size, streams, block_rows, 4, 9)
        return
    order = RowOrder.create(row_count, batch_size, streams, block_rows, 4, 9)
    epochs = [epoch_rows(order, epoch) for epoch in (0, 1)]
    for rows in epochs:
        assert rows.shape == (row_count // batch_size, batch_size)
        assert len(np.unique(rows)) == rows.size
        assert 0 <= rows.min() <= rows.max() < row_count
    if row_count > 100:
        assert not np.array_equal(*epochs)


def test_rows_left_out_differ_between_epochs() -> None:
    order = RowOrder.create(103, 8, 2, 8, 4, 0)
    missing = [frozenset(range(103)) - set(epoch_rows(order, epoch).ravel().tolist()) for epoch in range(12)]
    assert {len(each) for each in missing} == {7}
    assert len(set(missing)) > 6


def test_without_shuffling_the_order_is_the_datasets() -> None:
    order = RowOrder.create(103, 8, 2, 8, 4, 0, shuffle=False)
    assert epoch_rows(order, 0).ravel().tolist() == list(range(96))


def test_shuffling_is_fair() -> None:
    """Rows of a batch come from all over the dataset, and places of a row in two epochs have no relation."""
    order = RowOrder.create(2**14, 64, 8, 64, 32, 1)
    first, second = (epoch_rows(order, epoch) for epoch in (0, 1))
    blocks = first // 64
    assert np.mean([len(np.unique(batch)) for batch in blocks]) > 25  # of the 32 in a window
    places = [np.argsort(rows.ravel()) for rows in (first, second)]
    assert abs(np.corrcoef(*places)[0, 1]) < 0.05
    assert abs(np.corrcoef(places[0], np.arange(2**14))[0, 1]) < 0.1
    # Neighbours of the dataset seldom come one after the other.
    assert np.mean(np.abs(np.diff(first.ravel())) == 1) < 0.01


def test_golden_order() -> None:
    order = RowOrder.create(100, 4, 2, 8, 4, 42)
    assert epoch_rows(order, 0)[:3].tolist() == [[61, 94, 27, 28], [57, 58, 7, 25], [92, 89, 3, 6]]
    assert epoch_rows(order, 1)[:3].tolist() == [[21, 88, 26, 2], [18, 20, 24, 5], [17, 23, 0, 30]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"streams": 3}, "streams must divide batch_size = 8, got 3"),
        ({"streams": 0}, "streams must be at least 1"),
        ({"block_rows": 0}, "block_rows must be at least 1"),
        ({"shuffle_blocks": 0}, "shuffle_blocks must be at least 1, got 0"),
        ({"seed": -1}, "seed must be in"),
    ],
)
def test_errors(changes: dict[str, int], message: str) -> None:
    usual = {"row_count": 99, "batch_size": 8, "streams": 2, "block_rows": 4, "shuffle_blocks": 4, "seed": 0}
    with pytest.raises(ArgumentError, match=message):
        RowOrder.create(**(usual | changes))
