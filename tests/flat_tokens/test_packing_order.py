"""The shuffled order of packs: each pack once, windows whole, another order an epoch, the same in every version; and
what reading in it costs."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import PackedSequences
from flat_tokens.errors import ArgumentError
from flat_tokens.packs.packing_order import shuffled_packs
from flat_tokens.storage.elements import StoredElements
from flat_tokens.storage.layout import ArrayLayout

GOLDEN = ["a4aef797ae930afd", "b13f424b7f99dcbf", "cb504ad2a67172f5"]


@pytest.mark.parametrize("block_packs", [1, 3, 10, 1000])
@pytest.mark.parametrize("bounds", [[0], [0, 1], [0, 4, 4, 9, 20], list(range(40))], ids=str)
def test_each_pack_once_and_blocks_whole(bounds: list[int], block_packs: int) -> None:
    windows = np.array(bounds)
    order = shuffled_packs(windows, block_packs, 3, 0)
    assert sorted(order.tolist()) == list(range(bounds[-1]))
    assert order.dtype == np.int64
    of_window = np.searchsorted(windows, order, side="right") - 1
    blocks = windows[of_window] // block_packs
    assert np.count_nonzero(np.diff(blocks)) == max(0, len(np.unique(blocks)) - 1)


def test_the_order_never_changes() -> None:
    orders = [
        shuffled_packs(np.arange(0, 2001, 40), 100, seed, epoch) for seed, epoch in ((0, 0), (0, 1), (7, 0))
    ]
    digests = [hashlib.sha256(order.astype("<i8").tobytes()).hexdigest()[:16] for order in orders]
    assert digests == GOLDEN


@pytest.mark.parametrize(
    "options", [{}, {"split_across_pack": True}, {"strategy": "best-fit", "window_seqs": 50}], ids=str
)
def test_shuffled_packs_of_a_dataset(make_dataset: Any, random_sequences: Any, options: Any) -> None:
    train = flat_tokens.open(make_dataset(random_sequences(3, 400, longest=12))).train
    packed = PackedSequences(train, 16, **options)
    order = packed.shuffled(5)
    assert sorted(order.tolist()) == list(range(len(packed)))
    assert np.array_equal(order, packed.shuffled(5, 0))
    assert not np.array_equal(order, packed.shuffled(5, 1))
    assert not np.array_equal(order, packed.shuffled(6))
    assert packed.batch(order[:3]).tokens.shape == (3, 16)
    few = PackedSequences(train, 16, max_packs=7, **options)
    assert sorted(few.shuffled().tolist()) == list(range(7))
    for arguments in ((-1, 0), (0, -1), (2**64, 0)):
        with pytest.raises(ArgumentError):
            packed.shuffled(*arguments)


def test_a_zarr_chunk_is_decoded_once_a_pack(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_dataset(random_sequences(3, 600, longest=12), layout=ArrayLayout.create(2, 256))
    train = flat_tokens.open(path).train
    packed = PackedSequences(train, 64, strategy="best-fit", window_seqs=200)
    expected = list(packed)
    tokens = train.encoded_tokens
    decoded: list[int] = []
    former = StoredElements._decode

    def noted(self: StoredElements, index: int, *arguments: Any, **options: Any) -> int:
        if self is tokens:
            decoded.append(index)
        return former(self, index, *arguments, **options)

    monkeypatch.setattr(StoredElements, "_decode", noted)
    for index in np.random.default_rng(1).permutation(len(packed))[:60].tolist():
        tokens._reset()
        decoded.clear()
        assert packed[index].tokens.tolist() == expected[index].tokens.tolist()
        assert decoded == sorted(set(decoded))
