"""Every epoch has each row at most once at every size, and a batch resembles a draw from the whole corpus."""

from __future__ import annotations

import numpy as np
import pytest

from flat_tokens.loading.loader import BLOCK_TOKENS, WINDOW_TOKENS
from flat_tokens.order.permutation import derive_key, permute
from flat_tokens.order.row_order import MIN_LANE_BLOCKS, Draws, RowOrder, stream_count


def order_of(
    row_count: int,
    batch_size: int,
    streams: int,
    block_rows: int,
    shuffle_blocks: int,
    seed: int,
    shuffle: bool = True,
) -> RowOrder:
    draws = row_count // batch_size * (batch_size // streams)
    return RowOrder.create(row_count, draws, streams, block_rows, shuffle_blocks, seed, shuffle)


def draws_of(order: RowOrder, streams: np.ndarray, draws: np.ndarray) -> Draws:
    return Draws.of([order], np.zeros_like(streams), streams, draws)


def epoch_rows(order: RowOrder, epoch: int) -> np.ndarray:
    """Return int64[streams, draws]."""
    streams = np.repeat(np.arange(order.streams), order.draws)
    draws = np.tile(np.arange(order.draws), order.streams) + epoch * order.draws
    return draws_of(order, streams, draws).rows().reshape(order.streams, order.draws)


@pytest.mark.promise("epochs")
@pytest.mark.parametrize("row_count", [1, 63, 64, 65, 127, 600, 2011])
@pytest.mark.parametrize(("batch_size", "streams"), [(1, 1), (6, 2), (8, 8), (60, 4)])
@pytest.mark.parametrize("block_rows", [1, 3, 16, 300])
@pytest.mark.parametrize("shuffle_blocks", [1, 7, 40])
def test_each_row_once_per_epoch(
    row_count: int, batch_size: int, streams: int, block_rows: int, shuffle_blocks: int
) -> None:
    if row_count < batch_size:
        return
    order = order_of(row_count, batch_size, streams, block_rows, shuffle_blocks, 9)
    epochs = [epoch_rows(order, epoch) for epoch in (0, 1)]
    for rows in epochs:
        assert rows.size == row_count // batch_size * batch_size
        assert len(np.unique(rows)) == rows.size
        assert 0 <= rows.min() <= rows.max() < row_count
    if row_count > 100:
        assert not np.array_equal(*epochs)


def test_rows_left_out_differ_between_epochs() -> None:
    order = order_of(103, 8, 2, 8, 4, 0)
    missing = [frozenset(range(103)) - set(epoch_rows(order, epoch).ravel().tolist()) for epoch in range(12)]
    assert {len(each) for each in missing} == {7}
    assert len(set(missing)) > 6


def test_without_shuffling_the_order_is_the_datasets() -> None:
    order = order_of(103, 8, 1, 8, 4, 0, shuffle=False)
    assert epoch_rows(order, 0).ravel().tolist() == list(range(96))


@pytest.mark.parametrize(
    ("tokens", "batch_size", "bound"),
    [
        (50_000_000, 64, 1.5),
        (50_000_000, 1024, 1.5),
        (50_000_000, 4096, 4),
        (170_000_000, 1000, 1.5),
        (900_000_000, 1024, 1.5),
        (10_000_000_000, 512, 1.5),
        (10_000_000_000, 1021, 1.5),
        (10_000_000_000, 1024, 1.5),
        (10_000_000_000, 4096, 4),
    ],
)
@pytest.mark.parametrize("seq_len", [1024, 2048])
def test_a_default_batch_held_few_of_the_sources_of_a_sorted_corpus(
    tokens: int, batch_size: int, bound: float, seq_len: int
) -> None:
    """A corpus of 64 equal sources, one after the other. `bound` is the variance of a source's rows per batch, as a
    multiple of its variance in batches of a full shuffle. It was 24 at 512 rows and 50 at 1,024."""
    source_count, row_count, block_rows = 64, tokens // seq_len, BLOCK_TOKENS // seq_len
    shuffle_blocks = WINDOW_TOKENS // BLOCK_TOKENS
    streams = stream_count(batch_size, min(shuffle_blocks, row_count // (block_rows * MIN_LANE_BLOCKS)))
    order = order_of(row_count, batch_size, streams, block_rows, shuffle_blocks, 5)
    share = 1 / source_count
    full = batch_size * share * (1 - share) * (row_count - batch_size) / (row_count - 1)
    steps = row_count // batch_size
    squares = []
    for step in np.random.default_rng(0).integers(0, 2 * steps, 60).tolist():
        stream, inside = np.divmod(np.arange(batch_size), batch_size // streams)
        rows = draws_of(order, stream, step * (batch_size // streams) + inside).rows()
        counts = np.bincount(rows * source_count // row_count, minlength=source_count)
        squares.append(np.mean((counts - batch_size * share) ** 2))
    assert np.mean(squares) < bound * full


@pytest.mark.parametrize(
    "order",
    [
        RowOrder(101, 48, 2, 3, 4, 2, 5),
        RowOrder(101, 48, 2, 3, 4, 1, 5),
        RowOrder(64, 8, 8, 1, 4, 3, 2**64 - 1),
        RowOrder(601, 601, 1, 7, 16, 1, 0),
    ],
)
def test_the_rules_in_plain_words(order: RowOrder) -> None:
    """The module's rules, one row at a time."""
    size, seed = order.block_rows, order.seed
    whole, short_rows = divmod(order.row_count, size)
    for epoch in (0, 3):
        blocks = [int(permute(i, whole, derive_key(seed, epoch, 1))) for i in range(whole)]
        cut = [[block * size + i for i in range(size)] for block in blocks]
        if short_rows:
            place = int(permute(0, whole + 1, derive_key(seed, epoch, 2)))
            cut.insert(place, [whole * size + i for i in range(short_rows)])
        line = [row for block in cut for row in block]
        block_of = [number for number, block in enumerate(cut) for _ in block]
        found = epoch_rows(order, epoch)
        first = 0
        for stream in range(order.streams):
            for lane in range(order.lanes):
                count = len(range(lane, order.draws, order.lanes))
                number = stream * order.lanes + lane
                spread = min(order.window_blocks * size, count)
                offset = (
                    int(permute(number, order.lane_count, derive_key(seed, 4))) * spread // order.lane_count
                )
                late = offset if order.window_blocks == 1 else 0
                windows: dict[int, list[int]] = {}
                for at in range(first + late, first + count):
                    window = (block_of[at] - block_of[first] + offset // size) // order.window_blocks
                    windows.setdefault(window, []).append(at)
                windows[-1] = list(range(first, first + late))
                drawn: list[int] = []
                for window in [*sorted(windows)[1:], -1]:
                    places = windows[window]
                    pieces = []
                    for at in range(0, len(places), size):
                        piece = places[at : at + size]
                        key = derive_key(seed, epoch, 3, number, piece[0])
                        pieces.append([line[piece[i]] for i in permute(range(len(piece)), len(piece), key)])
                    for turn in range(size):
                        drawn += [piece[turn] for piece in pieces if turn < len(piece)]
                assert found[stream, lane :: order.lanes].tolist() == drawn
                first += count
