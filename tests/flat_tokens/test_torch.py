"""The PyTorch datasets; skipped without torch: pip install torch, then pytest tests/flat_tokens/test_torch.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from batch_sources import sources

import flat_tokens
from flat_tokens.errors import ArgumentError
from flat_tokens.loading.loader import Loader
from flat_tokens.storage.layout import ArrayLayout

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader  # noqa: E402

from flat_tokens.torch import BatchDataset, RowDataset, block_mask, collate  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # torch warns about few cores and old names
]


@pytest.fixture
def train(make_dataset: Any, random_sequences: Any) -> Any:
    path = make_dataset(random_sequences(1, 120), layout=ArrayLayout.create(2, 16))
    return flat_tokens.open(path).train


EVERYTHING = (
    *("input_ids", "labels", "is_seq_start", "segment_ids", "positions", "position_ids", "lengths"),
    *("cu_seqlens", "max_seqlen", "mask"),
)


@pytest.mark.parametrize("kind", ["loader", "packs", "mixture"])
@pytest.mark.parametrize("workers", [0, 2])
def test_every_source_of_batches(train: Any, kind: str, workers: int) -> None:
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


@pytest.mark.long
@pytest.mark.parametrize(("count", "block_size"), [(1, 4), (5, 1), (12, 4), (33, 4), (33, 16)])
def test_block_masks(count: int, block_size: int) -> None:
    """Compare with the dense mask, and with the blocks that torch finds by evaluating every pair."""
    from torch.nn.attention.flex_attention import create_block_mask

    from flat_tokens.rows.segments import block_causal_mask

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
            # Blocks of one token have a full diagonal.
            assert other_full - full <= ({query} if block_size == 1 else set())
            assert full <= other_full
    at = torch.arange(count)
    for row in range(4):
        evaluated = mask.mask_mod(torch.tensor(row), torch.tensor(0), at[:, None], at[None, :])
        assert np.array_equal(evaluated, dense[row])


def test_block_attention_equals_dense_mask_attention(train: Any) -> None:
    from torch.nn.attention.flex_attention import flex_attention

    loader = Loader(flat_tokens.PackedSequences(train, 24), 24, 4, 2)
    batch = next(iter(BatchDataset(loader, fields=("input_ids", "block_mask", "mask"))))
    query, key, value = torch.randn(3, 4, 2, 24, 8, generator=torch.Generator().manual_seed(1))
    found = flex_attention(query, key, value, block_mask=batch["block_mask"])
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, batch["mask"][:, None])
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_block_mask_is_made_where_the_model_runs(train: Any) -> None:
    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=3, fields=("input_ids", "block_mask"))
    assert next(iter(DataLoader(dataset, None)))["block_mask"].shape == (4, 1, 5, 5)
    with pytest.raises(ArgumentError, match="block_mask"):
        next(iter(DataLoader(dataset, None, num_workers=1)))


@pytest.mark.slow
def test_tensors_that_are_held_keep_their_values(train: Any) -> None:
    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=25)
    held = list(DataLoader(dataset, None))
    again = [{name: tensor.clone() for name, tensor in batch.items()} for batch in DataLoader(dataset, None)]
    assert all(
        (batch[name] == other[name]).all() for batch, other in zip(held, again, strict=True) for name in batch
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_whole_batches_were_stacked(train: Any, batch_size: int, workers: int) -> None:
    """DataLoader, Trainer and accelerate stacked them into [1, 8, 128] or [4, 16, 128] without an error."""
    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=6)
    for options in ({}, {"collate_fn": lambda items: items[0]}):
        with pytest.raises(ArgumentError, match="batch_size=None") as error:
            next(iter(DataLoader(dataset, batch_size, num_workers=workers, **options)))
        assert (
            "\n"
            not in str(error.value).removeprefix("Caught").split(f"{ArgumentError.__name__}: ")[-1].rstrip()
        )
    batches = DataLoader(dataset, None, num_workers=workers)
    assert [tuple(batch["labels"].shape) for batch in batches] == [(4, 5)] * 6


def test_processes_were_given_batches_of_one_rank(train: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """accelerate and the Trainer call set_epoch, then split the items of a dataset among the processes."""
    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=6)
    dataset.set_epoch(1)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    for world_size in (1, 2):
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda size=world_size: size)
        if world_size == 1:
            dataset.set_epoch(1)
        else:
            with pytest.raises(ArgumentError, match="RowDataset"):
                dataset.set_epoch(1)


@pytest.mark.slow
def test_accelerate_stacked_whole_batches(train: Any) -> None:
    accelerate = pytest.importorskip("accelerate")
    dataset = BatchDataset(Loader(train, 5, 4, 2), stop=6)
    accelerator = accelerate.Accelerator(cpu=True)
    with pytest.raises(ArgumentError, match="batch_size=None"):
        next(iter(accelerator.prepare(DataLoader(dataset, 4))))
    assert len(list(accelerator.prepare(DataLoader(dataset, batch_size=None)))) == 6


@pytest.mark.slow
@pytest.mark.parametrize("workers", [None, "fork", "spawn"])
def test_rows_and_packs_under_workers(train: Any, workers: str | None) -> None:
    names = ("input_ids", "labels", "is_seq_start", "positions", "segment_ids", "mask")
    options = {"num_workers": 2, "multiprocessing_context": workers} if workers else {}
    for array in (train, flat_tokens.PackedSequences(train, 60, padding_id=3)):
        dataset = RowDataset(array, 60, fields=names)
        batches = list(DataLoader(dataset, 4, collate_fn=collate, **options))
        default = list(DataLoader(dataset, 4))
        assert sum(len(batch["labels"]) for batch in batches) == len(dataset)
        for number, (batch, other) in enumerate(zip(batches, default, strict=True)):
            for name in names:
                assert (batch[name] == other[name]).all()
                assert (batch[name][0] == dataset[4 * number][name]).all()
