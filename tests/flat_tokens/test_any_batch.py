"""Random loaders and mixtures: each batch, in any order of steps, equals rows cut from the tokens in memory."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from counting_store import copy_dataset
from small_datasets import write_dataset

import flat_tokens
from flat_tokens import Loader, Mixture
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.stores import open_store

RAW = ArrayLayout.create(2, 1024, compression="none")
LAYOUTS = [ArrayLayout.create(2, 8), RAW, ArrayLayout.create(3, 16, 64, "lz4")]


def draw_split(rng: random.Random, root: Path, length: int, packed: bool) -> tuple[Any, list[Any]]:
    """A split on a disk or a store, and (ids, inputs, targets) of each row."""
    count, longest = rng.choice([9, 50, 300]), rng.choice([4, 9, 30])
    sequences = [[rng.randrange(28) for _ in range(rng.randint(1, longest))] for _ in range(count)]
    ids = [id for sequence in sequences for id in sequence]
    inputs = [id for sequence in sequences for id in [0, *sequence[:-1]]]
    trained = [rng.random() < 0.7 for _ in ids] if rng.random() < 0.3 else None
    targets = [id if trained is None or trained[at] else -100 for at, id in enumerate(ids)]
    masks = None if trained is None else {"train": trained, "validation": []}
    write_dataset(root, sequences, [], rng.choice(LAYOUTS), masks)
    place: Any = root
    if rng.random() < 0.2:
        place = copy_dataset(root, open_store(f"memory://{uuid4().hex}/d.zarr"))
    ends = [len(ids) // length * length] if packed else np.cumsum([len(each) for each in sequences]).tolist()
    cuts = [
        slice(at, min(at + length, end))
        for start, end in itertools.pairwise([0, *ends])
        for at in range(start, end, length)
    ]
    return flat_tokens.open(place).train, [(ids[cut], inputs[cut], targets[cut]) for cut in cuts]


def check(batch: Any, rows: list[Any]) -> None:
    count, length = batch.ids.shape
    assert count == len(rows)
    for at, (ids, inputs, targets) in enumerate(rows):
        padding = length - len(ids)
        assert batch.ids[at].tolist() == ids + [0] * padding
        assert batch.inputs[at, : len(ids)].tolist() == inputs
        assert batch.targets[at].tolist() == targets + [-100] * padding


def rows_of(loader: Any, rows: tuple[list[Any], ...], step: int) -> list[Any]:
    if isinstance(loader, Loader):
        return [rows[0][row] for row in loader.rows_of(step)]
    drawn = zip(*loader.draws(step), strict=True)
    return [rows[i][loader.members[i].rows_of(int(draw))[stream]] for i, stream, draw in drawn]


@pytest.mark.parametrize("seed", range(40))
def test_any_batch_has_its_rows(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    length, packed, is_mixture = rng.choice([1, 3, 8]), rng.random() < 0.6, rng.random() < 0.4
    drawn = [draw_split(rng, tmp_path / str(i), length, packed) for i in range(1 + 2 * is_mixture)]
    splits, rows = zip(*drawn, strict=True)
    options: dict[str, Any] = {"packed": packed, "shuffle": rng.random() < 0.8}
    options["block_tokens"] = rng.choice([None, 1, 40, 2**62])
    options["shuffle_blocks"] = rng.choice([None, 1, 3, 16, 2**70])
    for rank in (0, 1):
        ranks = {"rank": rank, "world_size": 2, **options}
        weights = [(0, [1, 0, 2]), (5, [3, 1, 1])]
        loader = (
            Mixture(splits, weights, length, 2, seed, **ranks)
            if is_mixture
            else Loader(splits[0], length, 2, seed, **ranks)
        )
        first, stride = rng.choice([0, 10**9]) + rng.randrange(50), rng.randint(2, 5)
        forwards = list(range(first, first + 9))
        worker = [step for step in range(first, first + 15 * stride, stride) if rng.random() < 0.8]
        for step in [
            *forwards,
            *worker,
            *rng.choices(range(first + 99), k=5),
            *reversed(forwards),
            first,
            first,
        ]:
            check(loader.batch(step), rows_of(loader, rows, step))
        for prefetch in (True, False):
            for step, batch in enumerate(loader.from_step(first, first + 12, prefetch=prefetch), first):
                check(batch, rows_of(loader, rows, step))
