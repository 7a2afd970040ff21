"""Every epoch has each row at most once, whatever the sizes; hosts see parts of the same batches."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from flat_tokens.errors import ArgumentError
from flat_tokens.rows.permutation import derive_key, permute
from flat_tokens.rows.row_order import HostOrder, RowOrder


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


GOLDEN_ORDERS = [
    # row_count, batch_size, streams, block_rows, shuffle_blocks, seed; digests of the rows of epochs 0, 1 and 5
    ((100, 4, 2, 8, 4, 42), ["57506492763bd472", "87109339c8bbd359", "eacdab11b884175d"]),
    ((101, 4, 2, 8, 4, 42), ["f506e7f6d634ee9c", "bfc150132d06cc11", "6c2a35a23dcf763e"]),
    ((600, 8, 8, 16, 32, 7), ["c88c7842cc2b134c", "acc356b95c0c52c6", "c9fdd5f0af183650"]),
    ((601, 8, 4, 3, 4, 2**64 - 1), ["a97306547f791dca", "0b8e6363e94c7153", "372468f5896ed62b"]),
    ((64, 64, 8, 300, 4, 0), ["09954fa37547bada", "5f03b1aa2b492fdf", "916586b3e713076a"]),
    ((1000, 6, 3, 10, 1, 123456789), ["0cc79bd1cc55d9cf", "01f29cb3ca2371e3", "50c28400932144dd"]),
    ((16389, 64, 8, 64, 32, 1), ["fe651db02d13ce26", "6533c51493cc2a69", "f796f6df05dd7681"]),
    ((7, 1, 1, 1, 1, 3), ["23e4c22b78ccfb2d", "b1aa59601ef48c69", "5237ae2cc05603a9"]),
]


@pytest.mark.parametrize(("arguments", "digests"), GOLDEN_ORDERS)
def test_golden_orders_with_blocks_windows_and_tails(arguments: tuple[int, ...], digests: list[str]) -> None:
    """A run that is resumed by another version reads on where it was: each key of a permutation counts."""
    order = RowOrder.create(*arguments)
    assert [
        hashlib.sha256(epoch_rows(order, epoch).astype("<i8").tobytes()).hexdigest()[:16]
        for epoch in (0, 1, 5)
    ] == digests


def test_a_host_holds_its_share_of_a_window() -> None:
    order = RowOrder.create(1000, 64, 8, 16, 32, 7)
    assert order.window_rows == min(order.window_steps, order.steps_per_epoch) * 64
    host = HostOrder(order, 2 * order.rows_per_stream, 5 * order.rows_per_stream)
    assert (host.rows_per_batch, host.window_rows) == (24, order.window_rows // 8 * 3)
    assert host.rows(order.window_at(0)).size <= host.window_rows


@pytest.mark.parametrize(("row_count", "streams"), [(101, 2), (64, 8), (601, 1)])
def test_the_rules_in_plain_words(row_count: int, streams: int) -> None:
    """The module's text, row by row, for whole windows and tails."""
    batch_size, block_rows, seed = 8, 4, 5
    order = RowOrder.create(row_count, batch_size, streams, block_rows, 3 * streams, seed)
    rows, whole = order.block_rows, row_count // order.block_rows
    per_stream, steps = batch_size // streams, row_count // batch_size
    dealt = max(0, whole // streams - (row_count % batch_size > 0))
    for epoch in (0, 3):
        key = derive_key(seed, epoch, 1)
        blocks = [
            [int(permute(turn * streams + stream, whole, key)) for turn in range(dealt)]
            for stream in range(streams)
        ]
        tail_first = dealt * streams * rows
        tail_count = row_count - tail_first
        places = permute(np.arange(tail_count), max(1, tail_count), derive_key(seed, epoch, 2))
        tail = [tail_first + int(place) for place in places]
        tail = [
            int(permute(row // rows, whole, key)) * rows + row % rows if row // rows < whole else row
            for row in tail
        ]
        share = steps * per_stream - dealt * rows
        expected = np.empty((steps, streams, per_stream), np.int64)
        for stream in range(streams):
            dealt_rows = [block * rows + inside for block in blocks[stream] for inside in range(rows)]
            line = dealt_rows + tail[stream * share : (stream + 1) * share]
            length = order.window_steps * per_stream
            shuffled = []
            for window, first in enumerate(range(0, len(line), length)):
                part = line[first : first + length]
                window_key = derive_key(seed, epoch, 3, stream, window)
                shuffled += [part[place] for place in permute(np.arange(len(part)), len(part), window_key)]
            expected[:, stream] = np.array(shuffled).reshape(steps, per_stream)
        assert epoch_rows(order, epoch).tolist() == expected.reshape(steps, batch_size).tolist()


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
