"""A batch alone, read by several threads: the same rows, and errors are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.errors import DatasetError
from flat_tokens.loader import Loader
from flat_tokens.rows import parallel_fill
from flat_tokens.storage.layout import ArrayLayout


def a_split(make_dataset: Any, random_sequences: Any, **layout: Any) -> Any:
    sequences = random_sequences(5, 200, longest=12, largest_id=27)
    return flat_tokens.open(make_dataset(sequences, layout=ArrayLayout.create(2, 16, **layout))).train


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("packed", [True, False])
def test_threads_read_what_one_does(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch, threads: int, packed: bool
) -> None:
    monkeypatch.setattr(parallel_fill, "usable_threads", lambda *_: threads)
    train = a_split(make_dataset, random_sequences)
    loader, other = (
        Loader(train, 7, 12, 3, packed=packed, block_tokens=40, shuffle_blocks=4) for _ in range(2)
    )
    expected = list(other.from_step(0, len(other), prefetch=False))
    for step in reversed(range(len(loader))):
        batch = loader.batch(step)
        for name in ("inputs", "targets", "is_seq_start", "segment_ids", "is_padding"):
            assert np.array_equal(getattr(batch, name), getattr(expected[step], name))


def test_damage_is_told_by_threads(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_fill, "usable_threads", lambda *_: 3)
    train = a_split(make_dataset, random_sequences)
    (train.path / "encoded_tokens/9").unlink()
    loader = Loader(train, 7, 16, 3, shuffle=False)
    with pytest.raises(DatasetError, match="encoded_tokens/9: not there"):
        loader.batch(1)  # tokens 112 to 224, the zarr chunk has 144 to 160


def test_how_many_threads(make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = a_split(make_dataset, random_sequences).encoded_tokens
    raw = a_split(make_dataset, random_sequences, compression="none").encoded_tokens
    for cpus, rows, expected in ((1, 64, 1), (2, 64, 2), (64, 64, 4), (64, 12, 3), (64, 4, 1), (64, 1, 1)):
        monkeypatch.setattr(parallel_fill, "usable_cpus", lambda cpus=cpus: cpus)
        assert parallel_fill.usable_threads(decoded, rows) == expected
        assert parallel_fill.usable_threads(raw, rows) == 1
