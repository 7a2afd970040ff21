"""Golden batches and draws. A run resumed with another version must keep the order, so these values change only with
ORDER_VERSION.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import FlatTokensArray, Loader, Mixture, PackedSequences
from flat_tokens.rows.batch import Batch
from flat_tokens.storage.layout import ArrayLayout

LAYOUT = ArrayLayout.create(2, 64)


@pytest.fixture
def arrays(make_dataset: Any, random_sequences: Any) -> list[FlatTokensArray]:
    return [
        flat_tokens.open(make_dataset(random_sequences(seed, count), layout=LAYOUT, name=str(seed))).train
        for seed, count in ((1, 400), (2, 90))
    ]


def digest_of(values: Iterable[np.ndarray]) -> str:
    found = hashlib.sha256()
    for value in values:
        found.update(value.astype("<i8").tobytes())
    return found.hexdigest()[:16]


def arrays_of(batches: Iterable[Batch]) -> Iterable[np.ndarray]:
    for batch in batches:
        yield from (batch.inputs, batch.ids)


BLOCKS = {"block_tokens": 40, "shuffle_blocks": 6}
LONG = {"packed": False, "block_tokens": 48}


@pytest.mark.promise("batches")
@pytest.mark.parametrize(
    ("sizes", "options", "digest"),
    [
        ((5, 8, 0), {}, "a73d69443ecae0c1"),
        ((5, 8, 11), BLOCKS, "2337d915695dd7fc"),
        ((7, 6, 2**63), {"block_tokens": 40, "shuffle_blocks": 2, "streams": 3}, "73ff4753cb86584b"),
        ((6, 4, 5), LONG, "0828c92b51a874a6"),
        ((6, 4, 5), {"long_sequences": "truncate", **LONG}, "172d0c7936292b63"),
    ],
)
def test_batches_of_a_loader(
    arrays: list[FlatTokensArray], sizes: tuple[int, int, int], options: dict[str, Any], digest: str
) -> None:
    loader = Loader(arrays[0], *sizes, **options)
    count = loader.steps_per_epoch
    assert digest_of(arrays_of(map(loader.batch, (0, 1, 2, count - 1, count, 3 * count + 1)))) == digest


@pytest.mark.promise("mixtures")
@pytest.mark.parametrize(
    ("seed", "draws", "batches"),
    [
        (0, "1053927b198ec6b6", "2cc0d55482493492"),
        (3, "fbec04ef6cf0a422", "d2891f160a9243ae"),
        (2**64 - 1, "28f5c566d93f0a65", "18053041214118b9"),
    ],
)
def test_draws_and_batches_of_a_mixture(
    arrays: list[FlatTokensArray], seed: int, draws: str, batches: str
) -> None:
    mixture = Mixture(arrays, [3, 1], 4, 8, seed, **BLOCKS)
    drawn = [values for step in (0, 1, 7, 511, 512, 513, 5000, 10**6) for values in mixture.draws(step)]
    assert digest_of(drawn) == draws
    assert digest_of(arrays_of(map(mixture.batch, (0, 1, 600, 5000)))) == batches


@pytest.mark.parametrize(
    ("sizes", "packs", "options", "digest"),
    [
        ((5, 8, 3), None, {"drop_last": False, "block_tokens": 40}, "4a8cf2dd369550f9"),
        ((6, 7), None, {"drop_last": False, "packed": False, "block_tokens": 40}, "158a4fb126676a95"),
        ((12, 8, 3), {}, {}, "9bf45ae52b9dd249"),
        ((7, 6, 3), {"split_across_pack": True}, {}, "42622393547a593e"),
        ((12, 4), {"strategy": "best-fit", "window_seqs": 64}, {}, "3969aec14840c028"),
    ],
)
def test_batches_of_padded_rows_and_packs(
    arrays: list[FlatTokensArray], sizes: tuple[int, ...], packs: Any, options: Any, digest: str
) -> None:
    source = arrays[0] if packs is None else PackedSequences(arrays[0], sizes[0], **packs)
    loader = Loader(source, *sizes, **options)
    batches = [loader.batch(step) for step in (0, 1, 2, 6, 7, 30, 31, 200)]
    assert digest_of(arrays_of(batches)) == digest


def test_draws_by_a_schedule(arrays: list[FlatTokensArray]) -> None:
    weights = [(0, [3, 1]), (700, [1, 0]), (2000, [1, 5])]
    mixture = Mixture(arrays, weights, 4, 8, 5, **BLOCKS)
    drawn = [values for step in (0, 699, 700, 1999, 2000, 2001, 10**6) for values in mixture.draws(step)]
    assert digest_of(drawn) == "1cb3a8e7475e0248"
    assert digest_of(arrays_of(map(mixture.batch, (0, 700, 2000)))) == "8de65f439f18e1e6"
