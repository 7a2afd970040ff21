"""Work begun ahead: in a thread or when it is asked for, with the same results and errors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.loader import Loader
from flat_tokens.rows import ahead
from flat_tokens.rows.ahead import working_ahead
from flat_tokens.storage.layout import ArrayLayout


def fails() -> None:
    raise ValueError("it did not work")


@pytest.mark.parametrize(
    ("prefetch", "cpus", "is_threaded"),
    [(None, 1, False), (None, 2, True), (True, 1, True), (False, 8, False)],
)
def test_where_work_is_done(
    monkeypatch: pytest.MonkeyPatch, prefetch: bool | None, cpus: int, is_threaded: bool
) -> None:
    monkeypatch.setattr(ahead, "usable_cpus", lambda: cpus)
    done: list[int] = []
    with working_ahead(prefetch) as worker:
        assert worker.is_threaded == is_threaded
        first, second = (
            worker.begin(lambda number=number: done.append(number) or number) for number in (1, 2)
        )
        assert is_threaded or done == []
        assert (first.result(), second.result()) == (1, 2)
        assert done == [1, 2]
        name = worker.begin(lambda: threading.current_thread().name).result()
        assert name.startswith("flat_tokens-prefetch") == is_threaded
        with pytest.raises(ValueError, match="it did not work"):
            worker.begin(fails).result()


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_loader_on_one_processor(
    make_dataset: Any, random_sequences: Any, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    layout = ArrayLayout.create(2, 2**12 if compression == "none" else 16, compression=compression)
    train = flat_tokens.open(make_dataset(random_sequences(5, 200), layout=layout)).train
    loader = Loader(train, 7, 4, 3, block_tokens=40, shuffle_blocks=4)
    expected = [batch.inputs for batch in loader.from_step(3, 3 * len(loader), prefetch=True)]
    monkeypatch.setattr(ahead, "usable_cpus", lambda: 1)
    before = threading.active_count()
    for batch, other in zip(loader.from_step(3, 3 * len(loader)), expected, strict=True):
        assert threading.active_count() == before
        assert np.array_equal(batch.inputs, other)
