"""The PyTorch datasets; skipped without torch: pip install torch, then pytest tests/flat_tokens/test_torch.py."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.errors import ArgumentError
from flat_tokens.loading.loader import Loader
from flat_tokens.storage.layout import ArrayLayout

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # torch's own, of few cores and old names
]


@pytest.fixture
def train(make_dataset: Any, random_sequences: Any) -> Any:
    path = make_dataset(random_sequences(1, 120), layout=ArrayLayout.create(2, 16))
    return flat_tokens.open(path).train


def test_rows(train: Any) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import RowDataset, collate

    dataset = RowDataset(train, 5, fields=("inputs", "targets"))
    assert len(dataset) == train.row_count(5)
    batches = list(DataLoader(dataset, 4, collate_fn=collate))
    default = list(DataLoader(dataset, 4))
    for at, (batch, other) in enumerate(zip(batches, default, strict=True)):
        for row in range(len(batch["targets"])):
            inputs, targets = train.inputs_and_targets(4 * at + row, 5)
            assert batch["targets"][row].tolist() == targets.tolist()
            assert batch["inputs"][row].tolist() == inputs.tolist()
        assert all((batch[name] == other[name]).all() for name in batch)
    with pytest.raises(IndexError, match="outside"):
        dataset[len(dataset)]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_under_workers(train: Any, workers: int, method: str) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    if workers == 0 and method == "spawn":
        method = ""
    dataset = BatchDataset(Loader(train, 5, 4, 2, block_tokens=40), step=2, stop=13)
    context = method if workers else None
    found = list(DataLoader(dataset, None, num_workers=workers, multiprocessing_context=context))
    loader = Loader(train, 5, 4, 2, block_tokens=40)
    assert [batch["input_ids"].tolist() for batch in found] == [
        loader.batch(step).targets.tolist() for step in range(2, 13)
    ]


def test_state(train: Any) -> None:
    from flat_tokens.torch import BatchDataset

    dataset = BatchDataset(Loader(train, 5, 4, 2))
    batches = iter(dataset)
    for _ in range(3):
        next(batches)
    state = dataset.state_dict()
    assert state["step"] == 3
    other = BatchDataset(Loader(train, 5, 4, 2))
    other.load_state_dict(state)
    assert next(iter(other))["input_ids"].tolist() == next(batches)["input_ids"].tolist()
    with pytest.raises(ArgumentError, match="seed 2, this one has 9"):
        BatchDataset(Loader(train, 5, 4, 9)).load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_state_loaded_where_workers_are_started(train: Any, workers: int) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 5, 4, 2)
    dataset = BatchDataset(loader, stop=12)
    next(iter(dataset))  # what was read here before is nothing to the workers
    dataset.load_state_dict({"step": 5, "loader": loader.identity()})
    assert dataset.state_dict()["step"] == 5
    found = [batch["input_ids"].tolist() for batch in DataLoader(dataset, None, num_workers=workers)]
    assert found == [loader.batch(step).targets.tolist() for step in range(5, 12)]


@pytest.mark.parametrize(("workers", "is_kept"), [(0, False), (2, False), (2, True)])
def test_each_pass_begins_anew(train: Any, workers: int, is_kept: bool) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 5, 4, 2)
    batches = DataLoader(BatchDataset(loader, 3, 9), None, num_workers=workers, persistent_workers=is_kept)
    next(iter(batches))
    for _ in range(2):
        found = [batch["input_ids"].tolist() for batch in batches]
        assert found == [loader.batch(step).targets.tolist() for step in range(3, 9)]


@pytest.mark.parametrize("workers", [None, 0, 2])
def test_two_passes_at_once_have_the_same_batches(train: Any, workers: int | None) -> None:
    """The second one began behind the first one's first batch, and said nothing of what it left out."""
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    dataset = BatchDataset(Loader(train, 5, 4, 2), 3, 9)
    batches: Any = dataset if workers is None else DataLoader(dataset, None, num_workers=workers)
    found = [[batch["input_ids"].tolist() for batch in both] for both in zip(batches, batches, strict=True)]
    assert found == [[dataset.loader.batch(step).targets.tolist()] * 2 for step in range(3, 9)]


@pytest.mark.parametrize(("method", "is_kept"), [("fork", False), ("fork", True), ("spawn", False)])
@pytest.mark.parametrize("is_seeded", [False, True])
def test_passes_behind_the_one_that_a_state_began(
    train: Any, method: str, is_kept: bool, is_seeded: bool
) -> None:
    """With workers each of them began where the state was taken, so the steps before it were lost in every epoch."""
    import torch
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 5, 4, 2)
    dataset = BatchDataset(loader, 3, 9)
    options = {"multiprocessing_context": method, "persistent_workers": is_kept}
    for number in range(1 if is_kept or method == "spawn" else 2):
        dataset.load_state_dict(loader.state_at(6 + number))
        batches = DataLoader(dataset, None, num_workers=2, **options)
        for first in (6 + number, 3, 3):
            if is_seeded:
                torch.manual_seed(0)
            found = [batch["input_ids"].tolist() for batch in batches]
            assert found == [loader.batch(step).targets.tolist() for step in range(first, 9)]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_that_the_loader_has_loaded_was_passed_over(train: Any, workers: int) -> None:
    """The batches began at step 0, and the loader told step 0 for ever, since an adapter makes its batches."""
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    loader, again = Loader(train, 5, 4, 2), Loader(train, 5, 4, 2)
    dataset = BatchDataset(loader)
    next(iter(dataset))
    with pytest.raises(
        ArgumentError, match=r"an adapter .* makes the batches of this Loader.*state_dict\(\)"
    ):
        loader.state_dict()
    with pytest.raises(ArgumentError, match="load the state into that"):
        loader.load_state_dict(dataset.state_dict())
    again.load_state_dict(dataset.state_dict())
    batches = DataLoader(BatchDataset(again, stop=4), None, num_workers=workers)
    for first in (1, 0):
        found = [batch["input_ids"].tolist() for batch in batches]
        assert found == [loader.batch(step).targets.tolist() for step in range(first, 4)]
    assert next(iter(BatchDataset(again, 3)))["input_ids"].tolist() == loader.batch(3).targets.tolist()
    del dataset
    assert loader.state_dict()["step"] == 0  # nobody else makes its batches


def test_state_of_other_rows(train: Any) -> None:
    from flat_tokens.torch import BatchDataset

    longest = max(len(sequence) for sequence in train)
    split, truncated = (
        Loader(train, longest, 4, packed=False, long_sequences=choice) for choice in ("split", "truncate")
    )
    assert split.order == truncated.order  # as many rows
    state = BatchDataset(split).state_dict()
    with pytest.raises(ArgumentError, match="row_kind split, padded with 0, this one has truncate"):
        BatchDataset(truncated).load_state_dict(state)


def sources(train: Any) -> dict[str, Any]:
    """A Loader, a Mixture and a Loader of packs, of the same row length."""
    packed = flat_tokens.PackedSequences(train, 12, strategy="best-fit", window_seqs=32)
    options: dict[str, Any] = {"block_tokens": 40}
    return {
        "loader": Loader(train, 12, 4, 2, **options),
        "ramp": Loader(train, 12, [(0, 4), (3, 8)], 2, **options),
        "packs": Loader(packed, 12, 4, 2, **options),
        "mixture": flat_tokens.Mixture([train, packed], [(0, [1, 1]), (5, [1, 3])], 12, 4, 2, **options),
    }


EVERYTHING = (
    *("input_ids", "labels", "is_seq_start", "segment_ids", "positions", "position_ids", "lengths"),
    *("cu_seqlens", "max_seqlen", "mask"),
)


@pytest.mark.parametrize("kind", ["loader", "ramp", "packs", "mixture"])
@pytest.mark.parametrize("workers", [0, 2])
def test_every_source_of_batches(train: Any, kind: str, workers: int) -> None:
    import torch
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    source = sources(train)[kind]
    dataset = BatchDataset(source, 1, 9, fields=EVERYTHING)
    for step, found in enumerate(DataLoader(dataset, None, num_workers=workers), 1):
        batch = source.batch(step)
        assert found["cu_seqlens"].dtype == torch.int32
        assert type(found["max_seqlen"]) is int
        for name in ("segment_ids", "positions", "cu_seqlens", "max_seqlen", "is_seq_start"):
            assert np.array_equal(found[name], getattr(batch, name)), name
        assert np.array_equal(found["mask"], batch.mask())
        ignored = batch.is_padding | batch.is_seq_start
        assert np.array_equal(found["labels"], np.where(ignored, -100, batch.targets))
    assert step == 8


@pytest.mark.parametrize("kind", ["ramp", "packs", "mixture"])
@pytest.mark.parametrize("workers", [0, 2])
def test_states_of_every_source(train: Any, kind: str, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    from flat_tokens.torch import BatchDataset

    def loader() -> Any:
        dataset = BatchDataset(sources(train)[kind], stop=9)
        return stateful.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    first = loader()
    batches = iter(first)
    for _ in range(4):
        next(batches)
    again = loader()
    again.load_state_dict(first.state_dict())
    assert [batch["labels"].tolist() for batch in again] == [batch["labels"].tolist() for batch in batches]
    with pytest.raises(ArgumentError, match="the state is of a loader with "):
        BatchDataset(sources(train)["loader"]).load_state_dict(
            BatchDataset(sources(train)[kind], 5).state_dict()
        )


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("ranks", [1, 3])
def test_an_evaluation_has_every_token_once(make_dataset: Any, workers: int, ranks: int) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset, RowDataset, collate

    train = flat_tokens.open(make_dataset([list(range(1, 24)), list(range(24, 60))])).train
    for source in (train, flat_tokens.PackedSequences(train, 8, split_across_pack=True)):
        found = []
        for rank in range(ranks):
            loader = Loader(source, 8, 4, drop_last=False, rank=rank, world_size=ranks)
            dataset = BatchDataset(loader, fields=("inputs", "targets", "lengths"))
            for batch in DataLoader(dataset, None, num_workers=workers):
                assert ((batch["targets"] != -100).sum(dim=1) == batch["lengths"]).all()
                found += batch["targets"][batch["targets"] != -100].tolist()
        assert sorted(found) == list(range(1, 60))
        rows = RowDataset(source, 8, fields=("inputs", "targets"), drop_last=False)
        batches = DataLoader(rows, 3, collate_fn=collate, num_workers=workers)
        flat = [token for batch in batches for token in batch["targets"].flatten().tolist()]
        assert flat == [*range(1, 60), *[-100] * 5]


@pytest.mark.parametrize(("count", "block_size"), [(1, 4), (5, 1), (12, 4), (33, 4), (33, 16)])
def test_block_masks(count: int, block_size: int) -> None:
    """Beside the dense mask, and beside the blocks that torch finds by evaluating it everywhere."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask

    from flat_tokens.loading.segments import block_causal_mask
    from flat_tokens.torch import block_mask

    rng = np.random.default_rng(count)
    ids = np.cumsum(rng.random((4, count)) < 0.2, axis=1).astype(np.int64) + 1
    ids[1, count // 2 :] = 0
    ids[2] = 1
    ids[3] = 0
    dense = block_causal_mask(ids.astype(np.int32))
    mask = block_mask(torch.from_numpy(ids), block_size)
    expected = create_block_mask(mask.mask_mod, 4, 1, count, count, device="cpu", BLOCK_SIZE=block_size)
    assert mask.shape == (4, 1, count, count)
    assert torch.equal(mask.to_dense(), expected.to_dense())

    def blocks(of: Any, row: int, query: int) -> tuple[set[int], set[int]]:
        pairs = ((of.kv_num_blocks, of.kv_indices), (of.full_kv_num_blocks, of.full_kv_indices))
        part, full = (
            set(indices[row, 0, query, : counts[row, 0, query]].tolist()) for counts, indices in pairs
        )
        return part, full

    for row in range(4):
        for query in range(mask.kv_num_blocks.shape[-1]):
            (part, full), (other_part, other_full) = blocks(mask, row, query), blocks(expected, row, query)
            assert part | full == other_part | other_full
            assert not part & full
            assert other_full - full <= (
                {query} if block_size == 1 else set()
            )  # of one token, the diagonal is full
            assert full <= other_full
    at = torch.arange(count)
    for row in range(4):
        evaluated = mask.mask_mod(torch.tensor(row), torch.tensor(0), at[:, None], at[None, :])
        assert np.array_equal(evaluated, dense[row])


def test_attention_by_blocks_is_that_by_the_dense_mask(train: Any) -> None:
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    from flat_tokens.torch import BatchDataset

    loader = Loader(flat_tokens.PackedSequences(train, 24), 24, 4, 2)
    batch = next(iter(BatchDataset(loader, fields=("input_ids", "block_mask", "mask"))))
    query, key, value = torch.randn(3, 4, 2, 24, 8, generator=torch.Generator().manual_seed(1))
    found = flex_attention(query, key, value, block_mask=batch["block_mask"])
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, batch["mask"][:, None])
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_block_mask_is_made_where_the_model_runs(train: Any) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=3, fields=("input_ids", "block_mask"))
    assert next(iter(DataLoader(dataset, None)))["block_mask"].shape == (4, 1, 5, 5)
    with pytest.raises(ArgumentError, match="a block_mask cannot be sent by a worker"):
        next(iter(DataLoader(dataset, None, num_workers=1)))


NAMES = ("is_seq_start", "segment_ids", "positions", "position_ids")


@pytest.mark.parametrize("pair", [("input_ids", "labels"), ("inputs", "targets")])
@pytest.mark.parametrize("ignore", [True, False])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_fields(
    pair: tuple[str, str],
    ignore: bool,
    packed: bool,
    compression: str,
    make_dataset: Any,
    random_sequences: Any,
) -> None:
    import torch

    from flat_tokens.torch import BatchDataset, to_tensors

    layout = ArrayLayout.create(2, 16, compression=compression)
    array = flat_tokens.open(make_dataset(random_sequences(1, 120), layout=layout)).train
    loader = Loader(array, 5, 4, packed=packed, dtype="uint16")
    batches = BatchDataset(loader, stop=30, fields=(*pair, *NAMES), ignore_first_labels=ignore)
    for step, tensors in enumerate(batches):
        batch = loader.batch(step)
        assert tuple(tensors) == (*pair, *NAMES)
        assert all(tensors[name].dtype == torch.int64 for name in tensors if name != "is_seq_start")
        second = np.where(batch.is_padding, -100, batch.targets.astype(np.int64))
        if pair[0] == "input_ids" and ignore:
            second[batch.is_seq_start] = -100
        first = batch.targets if pair[0] == "input_ids" else batch.inputs
        others = [batch.is_seq_start, batch.segment_ids, batch.positions, batch.positions]
        for name, expected in zip(tensors, [first, second, *others], strict=True):
            assert tensors[name].tolist() == expected.tolist(), name
        again = to_tensors(batch, tuple(tensors), ignore_first_labels=ignore)
        assert all(torch.equal(again[name], tensors[name]) for name in tensors)
    assert step == 29


def test_tensors_that_are_held_keep_their_values(train: Any) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=25)
    held = list(DataLoader(dataset, None))
    again = [{name: tensor.clone() for name, tensor in batch.items()} for batch in DataLoader(dataset, None)]
    assert all(
        (batch[name] == other[name]).all() for batch, other in zip(held, again, strict=True) for name in batch
    )


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_state_of_a_dataset_in_workers_is_refused(train: Any, method: str) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=12)
    assert dataset.state_dict()["step"] == 0
    batches = iter(DataLoader(dataset, None, num_workers=2, multiprocessing_context=method))
    for _ in range(3):
        next(batches)
    with pytest.raises(ArgumentError, match="this process does not know their steps") as error:
        dataset.state_dict()
    assert "\n" not in str(error.value)
    del batches
    next(iter(dataset))  # a pass of this process
    assert dataset.state_dict()["step"] == 1


def test_state_loaded_after_the_workers_were_started(train: Any) -> None:
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 5, 4, 2)
    dataset = BatchDataset(loader, stop=12)
    batches = DataLoader(dataset, None, num_workers=2, persistent_workers=True)
    next(iter(batches))
    dataset.load_state_dict({"step": 5, "loader": loader.identity()})
    with pytest.raises(ArgumentError, match="loaded after this worker was started"):
        next(iter(batches))
    assert len(list(DataLoader(dataset, None, num_workers=2))) == 7


def test_copies_share_no_state(train: Any) -> None:

    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=12)
    for other in (copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))):
        list(DataLoader(other, None, num_workers=1))
        assert dataset.state_dict()["step"] == 0
        with pytest.raises(ArgumentError, match="does not know"):
            other.state_dict()


def test_stateful_dataloader(train: Any) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    from flat_tokens.torch import BatchDataset

    def loader(workers: int) -> Any:
        dataset = BatchDataset(Loader(train, 5, 4, 2), stop=12)
        return stateful.StatefulDataLoader(dataset, batch_size=None, num_workers=workers)

    for workers, taken in itertools.product((0, 2), (0, 1, 5)):  # of two workers, one or both made none yet
        first = loader(workers)
        batches = iter(first)
        for _ in range(taken):
            next(batches)
        state = first.state_dict()
        rest = [batch["labels"].tolist() for batch in batches]
        again = loader(workers)
        again.load_state_dict(state)
        assert [batch["labels"].tolist() for batch in again] == rest


def test_forked_ranks_share_no_state(train: Any) -> None:
    import torch.multiprocessing

    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 5, 4, 2)
    dataset = BatchDataset(loader)
    next(iter(dataset))

    def rank(found: Any) -> None:
        dataset.load_state_dict({"step": 7, "loader": loader.identity()})
        next(iter(dataset))
        found.put(dataset.state_dict()["step"])

    context: Any = torch.multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    process = context.Process(target=rank, args=(found,))
    process.start()
    assert found.get() == 8
    process.join()
    next(iter(dataset))
    assert dataset.state_dict()["step"] == 1


@pytest.mark.parametrize("how", ["fork", "deepcopy", "pickle"])
def test_copies_and_ranks_lost_a_loaded_state_under_workers(train: Any, how: str) -> None:
    """Their workers began at the first step; of forked ranks the workers of all but one did."""
    import torch.multiprocessing
    from torch.utils.data import DataLoader

    from flat_tokens.torch import BatchDataset

    dataset = BatchDataset(Loader(train, 5, 4, 2), 3, 9)
    dataset.load_state_dict(dataset.loader.state_at(6))

    def steps(of: Any, found: Any) -> None:
        batches = DataLoader(of, None, num_workers=2)
        found.put([[batch["input_ids"].tolist() for batch in batches] for _ in range(2)])

    context: Any = torch.multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    for _ in range(2):
        if how == "fork":
            process = context.Process(target=steps, args=(dataset, found))
            process.start()
        else:
            steps(copy.deepcopy(dataset) if how == "deepcopy" else pickle.loads(pickle.dumps(dataset)), found)
        want = [dataset.loader.batch(step).targets.tolist() for step in range(3, 9)]
        assert found.get() == [want[3:], want]
        if how == "fork":
            process.join()


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("BatchDataset", ["loader"], "loader must be a flat_tokens.Loader or a Mixture, got 'loader'"),
        ("BatchDataset", [None, -1], "step must be at least 0, got -1"),
        ("BatchDataset", [None, "a"], "step must be an integer, got 'a'"),
        ("BatchDataset", [None, 5, 1], "stop must be at least step = 5, got 1"),
        ("RowDataset", [5, 5], "array must be a split such as dataset.train, got 5"),
        ("RowDataset", [None, "a"], "seq_len must be an integer, got 'a'"),
    ],
)
def test_wrong_arguments(name: str, arguments: list[Any], message: str, train: Any) -> None:
    import flat_tokens.torch

    given = Loader(train, 4, 8) if name == "BatchDataset" else train
    with pytest.raises(ArgumentError, match=message):
        getattr(flat_tokens.torch, name)(*(given if value is None else value for value in arguments))


def test_unknown_fields(train: Any) -> None:
    from flat_tokens.torch import BatchDataset, RowDataset

    with pytest.raises(ArgumentError, match="fields may be input_ids, labels, .*got 'label'"):
        BatchDataset(Loader(train, 4, 8), fields=("input_ids", "label"))
    with pytest.raises(ArgumentError, match="fields must not have both input_ids and targets"):
        RowDataset(train, 4, fields=("input_ids", "targets"))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (None, "a state has step and loader"),
        ({}, "a state has step and loader"),
        ({"step": 3, "loader": None}, "a state has step and loader"),
        ({"step": -4}, "step of the state must be at least 0, got -4"),
        ({"step": "x"}, "step of the state must be an integer, got 'x'"),
    ],
)
def test_wrong_states(state: Any, message: str, train: Any) -> None:
    from flat_tokens.torch import BatchDataset

    loader = Loader(train, 4, 8)
    dataset = BatchDataset(loader)
    if state and "loader" not in state:
        state = {**state, "loader": loader.identity()}
    with pytest.raises(ArgumentError, match=message):
        dataset.load_state_dict(state)
    assert dataset.step == 0
