"""Ids of 16 bits and flags of one: the built loops equal those in numpy, and a loader with such windows one without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import Loader
from flat_tokens import format as flat_format
from flat_tokens.errors import DatasetError
from flat_tokens.rows.narrow_window import NarrowWindow, cut_narrow_with_numpy, narrow_with_numpy
from flat_tokens.rows.row_cut import cut_with_numpy
from flat_tokens.storage.layout import ArrayLayout

core: Any = pytest.importorskip("flat_tokens._core")
PLACES = 700


def tokens(count: int, seed: int, share: float = 0.02) -> Any:
    generator = np.random.default_rng(seed)
    encoded = generator.integers(0, 2**16, count).astype(np.uint32) << np.uint32(1)
    return encoded | (generator.random(count) < share).astype(np.uint32)


def empty(fill: int) -> tuple[Any, Any]:
    return np.full(PLACES, fill, np.uint16), np.full(-(-PLACES // 64), (2**64 - 1) * fill, np.uint64)


@pytest.mark.parametrize("fill", [0, 1])
@pytest.mark.parametrize("at", [0, 1, 63, 64, 65, 130])
@pytest.mark.parametrize("count", [0, 1, 2, 62, 63, 64, 65, 127, 128, 129, 500])
def test_narrowing_writes_its_places_alone(count: int, at: int, fill: int) -> None:
    encoded = tokens(count, count + at, 0.3)
    found, expected = empty(fill), empty(fill)
    largest = core.narrow(encoded, *found, at)
    assert largest == narrow_with_numpy(encoded, *expected, at) == encoded.max(initial=0)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert np.array_equal(found[0][at : at + count], encoded >> 1)


@pytest.mark.parametrize("dtype", ["uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 511])
def test_rows_are_cut_as_from_wide_tokens(length: int, dtype: str) -> None:
    encoded = tokens(PLACES, length, 0.1)
    ids, bits = empty(0)
    core.narrow(encoded, ids, bits, 0)
    firsts = np.concatenate(
        [[1, PLACES - length], np.random.default_rng(length).integers(1, PLACES - length + 1, 9)]
    )
    shape = (len(firsts), length)
    made = []
    for cut, source in (
        (core.cut_narrow, (ids, bits)),
        (cut_narrow_with_numpy, (ids, bits)),
        (cut_with_numpy, (encoded,)),
    ):
        out = np.full(shape, 7, dtype), np.full(shape, 7, dtype), np.ones(shape, np.bool_)
        cut(*source, firsts, length, *out)
        made.append(out)
    for other in made[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(made[0], other, strict=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: core.narrow(np.zeros(5, np.uint32), *empty(0), PLACES - 4),
            "5 tokens do not fit at 696 of 700",
        ),
        (lambda: core.narrow(np.zeros(5, np.uint32), *empty(0), 2**63), "do not fit at"),
        (
            lambda: core.narrow(np.zeros(5, np.uint32), empty(0)[0], np.zeros(10, np.uint64), 0),
            "start_bits has 80",
        ),
        (
            lambda: core.cut_narrow(
                *empty(0),
                np.array([0]),
                4,
                *(np.zeros(4, np.uint16) for _ in range(2)),
                np.zeros(4, np.bool_),
            ),
            r"firsts\[0\] must be in \[1, 696\], got 0",
        ),
    ],
    ids=["behind the end", "far behind", "too few bits", "nothing in front"],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("largest_id", [2**16 - 1, 2**16], ids=["narrow", "wide"])
def test_loaded_batches_are_the_rows(make_dataset: Any, random_sequences: Any, largest_id: int) -> None:
    sequences = [*random_sequences(5, 150, 40, largest_id), [largest_id]]
    train = flat_tokens.open(make_dataset(sequences, layout=ArrayLayout.create(2, 64))).train
    assert NarrowWindow.holds(train.max_token_id) == (largest_id < 2**16)
    inputs, targets = flat_format.inputs_and_targets(train.encoded_tokens[:])
    loader = Loader(train, 17, 4, 3, block_tokens=100, shuffle_blocks=4, dtype="uint32")
    for step, batch in zip(range(2 * len(loader)), loader.from_step(0), strict=False):
        places = loader.rows_of(step)[:, None] * 17 + np.arange(17)
        assert np.array_equal(batch.inputs, inputs[places])
        assert np.array_equal(batch.targets, targets[places])


@pytest.mark.parametrize("prefetch", [False, True])
def test_an_id_above_the_largest_allowed_is_told(make_dataset: Any, prefetch: bool) -> None:
    path = make_dataset([[5] * 30] * 39 + [[6] * 30], layout=ArrayLayout.create(2, 64))
    (path / "manifest.json").unlink()
    (path / "train/.zattrs").write_text('{"max_token_id": 5}')
    loader = Loader(flat_tokens.open(path).train, 8, 2, block_tokens=64, shuffle_blocks=3)
    with pytest.raises(
        DatasetError, match=r"encoded_tokens/18: id 6 at position 1170 is above max_token_id 5"
    ):
        list(loader.from_step(0, len(loader), prefetch=prefetch))


def test_small_ids_alone_are_narrow() -> None:
    assert NarrowWindow.holds(2**16 - 1)
    assert not NarrowWindow.holds(2**16)
