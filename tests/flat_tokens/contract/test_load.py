"""The contract of loading: every batch of every adapter has the rows that the order assigns to it.

A dataset has the token IDs 0, 1, 2 ... in order, so that an ID is a position. A list of rows is the reference. Kinds
of rows, layouts, stores, masks, ranks, row orders and adapters are drawn.
"""

from __future__ import annotations

import importlib.util
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from counting_store import copy_dataset
from small_datasets import numbered, write_dataset

import flat_tokens
from flat_tokens import ArrayLayout, Loader, Mixture, PackedSequences
from tokenmill.stores import open_store

LAYOUTS = [
    ArrayLayout.create(2, 8),
    ArrayLayout.create(2, 1024, compression="none"),
    ArrayLayout.create(3, 16, 64, "lz4"),
    ArrayLayout.create(3, 8, 32, "none"),
]
KINDS = ("rows", "rows", "split", "truncate", "packs", "cut packs", "best-fit")
ADAPTERS = ("numpy", "grain", "torch", "jax")
COMMON = ("is_seq_start", "segment_ids", "positions", "lengths", "loss_mask")

Row = list[tuple[int, bool]]  # per token: its ID, and whether a sequence or a segment of a pack starts there


def draw_split(rng: random.Random, root: Path) -> tuple[Any, list[list[int]], np.ndarray]:
    """Return a split on disk or a store, its sequences, and its loss mask."""
    count, longest = rng.choice([30, 50, 300]), rng.choice([4, 9])
    lengths = [rng.randint(1, longest) for _ in range(count)]
    sequences = numbered(lengths)
    has_mask = rng.random() < 0.3
    trained = np.array([not has_mask or rng.random() < 0.7 for _ in range(sum(lengths))])
    masks = {"train": trained.tolist(), "validation": []} if has_mask else None
    write_dataset(root, sequences, [], rng.choice(LAYOUTS), masks)
    place: Any = root
    if rng.random() < 0.2:
        pytest.importorskip("obstore", reason="obstore is not installed")
        place = copy_dataset(root, open_store(f"memory://{uuid4().hex}/d.zarr"))
    return flat_tokens.open(place).train, sequences, trained


def rows_of_kind(
    kind: str, sequences: list[list[int]], length: int, drop_last: bool, packed: Any
) -> list[Row]:
    stream = [(id, at == 0) for sequence in sequences for at, id in enumerate(sequence)]
    if kind == "rows":
        stop = len(stream) // length * length if drop_last else len(stream)
        return [stream[at : min(at + length, stop)] for at in range(0, stop, length)]
    if kind in ("split", "truncate"):
        rows = []
        for sequence in sequences:
            tokens = [(id, at == 0) for at, id in enumerate(sequence)]
            parts = [tokens[at : at + length] for at in range(0, len(tokens), length)]
            rows += parts if kind == "split" else parts[:1]
        return rows
    if kind == "cut packs":
        rows = [stream[at : at + length] for at in range(0, len(stream), length)]
        return [[(row[0][0], True), *row[1:]] for row in rows]
    if kind == "packs":
        rows = [[]]
        for sequence in sequences:
            if len(rows[-1]) + len(sequence) > length:
                rows.append([])
            rows[-1] += [(id, at == 0) for at, id in enumerate(sequence)]
        return rows
    rows = []
    for pack in packed:  # test_packs.py checks which sequences share a pack
        starts = set(pack.cu_seqlens.tolist())
        rows.append([(id, at in starts) for at, id in enumerate(pack.tokens[: pack.token_count].tolist())])
    return rows


def arrays_of(
    rows: list[tuple[Row, np.ndarray]], length: int, pair: tuple[str, str]
) -> dict[str, np.ndarray]:
    """Return the arrays of a batch with these rows."""
    found = {name: np.zeros((len(rows), length), dtype=np.int64) for name in (*pair, *COMMON)}
    found["lengths"] = np.array([len(row) for row, _ in rows])
    found[pair[1]][:] = -100
    for at, (row, trained) in enumerate(rows):
        segment = position = 0
        for column, (id, is_start) in enumerate(row):
            position = 0 if is_start or not column else position + 1
            segment += position == 0
            has_loss = trained[id] and not (is_start and pair[1] == "labels")
            found[pair[0]][at, column] = id if pair[0] == "input_ids" else 0 if is_start else id - 1
            found[pair[1]][at, column] = id if has_loss else -100
            found["is_seq_start"][at, column] = is_start
            found["segment_ids"][at, column] = segment
            found["positions"][at, column] = position
            found["loss_mask"][at, column] = trained[id]
    return found


class Case:
    """A loader or mixture with drawn arguments for each rank, and the rows of its batches."""

    def __init__(self, rng: random.Random, root: Path, seed: int) -> None:
        self.length, self.world_size = rng.choice([1, 3, 9]), rng.choice([1, 2, 3])
        self.is_mixture = rng.random() < 0.4
        kinds = [rng.choice(KINDS) for _ in range(3 if self.is_mixture else 1)]
        if self.is_mixture and not set(kinds) <= {"packs", "cut packs", "best-fit"}:
            kinds = [kind if kind in ("packs", "cut packs", "best-fit") else "rows" for kind in kinds]
        kind, drop_last = kinds[0], self.is_mixture or rng.random() < 0.7
        if any(kind in ("packs", "best-fit") for kind in kinds):
            self.length = 9
        self.options: dict[str, Any] = {"drop_last": drop_last, "shuffle": rng.random() < 0.8}
        if kind in ("split", "truncate"):
            self.options |= {"packed": False, "long_sequences": kind}
        self.options["block_tokens"] = rng.choice([None, 1, 40, 2**62])
        self.options["shuffle_blocks"] = rng.choice([None, 1, 3, 16, 2**70])
        self.batch_size = self.world_size * (1 + self.is_mixture) if drop_last else 4
        self.seed = seed
        self.arrays: list[Any] = []
        self.rows: list[list[tuple[Row, np.ndarray]]] = []
        for number, kind in enumerate(kinds):
            array, sequences, trained = draw_split(rng, root / str(number))
            if kind in ("packs", "cut packs", "best-fit"):
                strategy = "best-fit" if kind == "best-fit" else "greedy"
                array = PackedSequences(
                    array, self.length, split_across_pack=kind == "cut packs", strategy=strategy
                )
            self.arrays.append(array)
            rows = rows_of_kind(kind, sequences, self.length, drop_last, array)
            self.rows.append([(row, trained) for row in rows])

    def make(self, rank: int, world_size: int) -> Any:
        options = {**self.options, "rank": rank, "world_size": world_size}
        if self.is_mixture:
            weights = [(0, [1, 0, 2]), (5, [3, 1, 1])]
            return Mixture(self.arrays, weights, self.length, self.batch_size, self.seed, **options)
        return Loader(self.arrays[0], self.length, self.batch_size, self.seed, **options)

    def expected(self, loader: Any, step: int, pair: tuple[str, str]) -> dict[str, np.ndarray]:
        padding: tuple[Row, np.ndarray] = ([], np.zeros(0, dtype=np.bool_))
        if isinstance(loader, Loader):
            numbers = loader.rows_of(step).tolist()
            rows = [self.rows[0][row] if row < len(self.rows[0]) else padding for row in numbers]
        else:
            drawn = zip(*(values.tolist() for values in loader.draws(step)), strict=True)
            rows = [self.rows[i][loader.members[i].rows_of(draw)[stream]] for i, stream, draw in drawn]
        return arrays_of(rows, self.length, pair)


def check(found: Any, expected: dict[str, np.ndarray]) -> None:
    is_token = np.arange(expected["loss_mask"].shape[1]) < expected["lengths"][:, None]
    for name, values in expected.items():
        other = np.asarray(found[name])
        assert other.shape == values.shape
        if name in ("inputs", "positions"):  # padding may have any value
            other, values = np.where(is_token, other, 0), np.where(is_token, values, 0)
        assert np.array_equal(other, values), name


def read(adapter: str, loader: Any, first: int, stop: int, pair: tuple[str, str]) -> Iterator[Any]:
    """Return an adapter's batches of the steps [first, stop)."""
    fields = (*pair, *COMMON)
    if adapter == "grain":
        from flat_tokens.grain import BatchSource

        source = BatchSource(loader, stop, fields=fields)
        yield from (source[step] for step in range(first, stop))
    elif adapter == "torch":
        from flat_tokens.torch import BatchDataset

        dataset = BatchDataset(loader, first, stop, fields=fields)
        assert len(dataset) == stop - first
        yield from dataset
    elif adapter == "jax":
        import jax

        from flat_tokens.jax import global_batches

        sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        yield from global_batches(loader, sharding, first, stop, fields=fields)
    else:
        from flat_tokens.fields import Fields

        for batch in loader.from_step(first, stop, prefetch=True):
            yield Fields(fields).make(batch, np.int32)


@pytest.mark.slow
@pytest.mark.promise("masks")
@pytest.mark.promise("batches")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("seed", range(15))
def test_any_batch_has_its_rows(tmp_path: Path, seed: int, adapter: str) -> None:
    if adapter in ("torch", "jax") and importlib.util.find_spec(adapter) is None:
        pytest.skip(f"{adapter} is not installed")
    rng = random.Random(f"{seed} {adapter}")
    case = Case(rng, tmp_path, seed)
    if adapter == "jax":
        case.world_size = 1
    pair = rng.choice([("input_ids", "labels"), ("inputs", "targets")])
    for rank in range(case.world_size):
        loader = case.make(rank, case.world_size)
        first = rng.choice([0, 10**9]) + rng.randrange(50)
        for step, found in enumerate(read(adapter, loader, first, first + 12, pair), first):
            check(found, case.expected(loader, step, pair))


@pytest.mark.slow
@pytest.mark.promise("batches")
@pytest.mark.parametrize("seed", range(25))
def test_steps_in_any_order(tmp_path: Path, seed: int) -> None:
    from flat_tokens.fields import Fields

    rng = random.Random(seed)
    case, pair = Case(rng, tmp_path, seed), ("inputs", "targets")
    loader = case.make(case.world_size - 1, case.world_size)
    first, stride = rng.choice([0, 10**9]) + rng.randrange(50), rng.randint(2, 5)
    forwards = list(range(first, first + 9))
    worker = [step for step in range(first, first + 15 * stride, stride) if rng.random() < 0.8]
    anywhere = rng.choices(range(first + 99), k=5)
    for step in [*forwards, *worker, *anywhere, *reversed(forwards), first, first]:
        found = Fields((*pair, *COMMON)).make(loader.batch(step), np.int64)
        check(found, case.expected(loader, step, pair))
    for prefetch in (True, False):
        for step, batch in enumerate(loader.from_step(first, first + 12, prefetch=prefetch), first):
            check(Fields((*pair, *COMMON)).make(batch, np.int64), case.expected(loader, step, pair))


@pytest.mark.promise("batches")
@pytest.mark.parametrize("seed", range(15))
def test_a_run_resumes_on_other_ranks(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    case = Case(rng, tmp_path, seed)
    whole = case.make(0, 1)
    step = rng.randrange(30)
    parts = [case.make(rank, case.world_size) for rank in range(case.world_size)]
    assert {part.step_of(pickle.loads(pickle.dumps(whole.state_at(step)))) for part in parts} == {step}
    batches = [next(pickle.loads(pickle.dumps(part)).from_step(step)) for part in parts]
    together = np.concatenate([batch.targets for batch in batches])
    assert np.array_equal(together[: case.batch_size], whole.batch(step).targets)


@pytest.mark.slow
@pytest.mark.promise("epochs")
@pytest.mark.parametrize("seed", range(10))
def test_each_pass_is_the_next_epoch(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    case = Case(rng, tmp_path, seed)
    loader = case.make(0, 1)
    if case.is_mixture:  # mixtures have no epochs
        for _ in range(2):
            assert np.array_equal(next(iter(loader)).ids, loader.batch(0).ids)
        return
    steps = len(loader)
    epochs = [[batch.ids for batch in loader] for _ in range(3)]
    assert np.array_equal(np.concatenate(epochs), [loader.batch(step).ids for step in range(3 * steps)])
    assert np.array_equal([batch.ids for batch in loader.epoch(1)], epochs[1])
    for e in range(2):
        rows = np.concatenate([loader.rows_of(e * steps + step) for step in range(steps)])
        assert len(np.unique(rows[rows < len(case.rows[0])])) == min(
            len(case.rows[0]), steps * case.batch_size
        )
