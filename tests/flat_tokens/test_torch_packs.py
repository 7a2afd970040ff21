"""Packs through PyTorch's DataLoader, by forked and spawned workers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flat_tokens
from flat_tokens import ArgumentError, PackedSequences

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from flat_tokens.torch_packs import PackDataset, collate_flat, collate_packs  # noqa: E402

# torch's own, where there are fewer processors than workers
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


@pytest.fixture
def packed(make_dataset: Callable[..., Path], random_sequences: Any) -> PackedSequences:
    return PackedSequences(flat_tokens.open(make_dataset(random_sequences(0, 60))).train, 12)


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        ("transformers", ["input_ids", "labels", "position_ids", "seq_lens", "segment_ids"]),
        ("torchtune", ["tokens", "labels", "input_pos", "seq_lens", "segment_ids"]),
    ],
)
def test_an_item_is_a_pack(names: str, keys: list[str], packed: PackedSequences) -> None:
    dataset = PackDataset(packed, names)
    assert len(dataset) == len(packed)
    for index in (0, 3, -1):
        item, pack = dataset[index], packed[index]
        assert list(item) == keys
        assert all(tensor.dtype == torch.int64 for tensor in item.values())
        expected = (pack.tokens, pack.labels, pack.input_pos, pack.seq_lens, pack.segment_ids)
        for tensor, array in zip(item.values(), expected, strict=True):
            assert tensor.tolist() == array.tolist()
    with pytest.raises(IndexError, match=r"pack \d+ is outside"):
        dataset[len(packed)]


@pytest.mark.parametrize("workers", [None, "fork", "spawn"])
def test_batches_are_those_of_the_packs(workers: str | None, packed: PackedSequences) -> None:
    if workers == "fork" and sys.platform == "darwin":
        pytest.skip("fork is not safe there")
    loader = DataLoader(
        PackDataset(packed),
        batch_size=4,
        collate_fn=collate_packs,
        num_workers=2 if workers else 0,
        multiprocessing_context=workers,
    )
    count = 0
    for at, batch in enumerate(loader):
        expected = packed.batch(range(4 * at, min(4 * at + 4, len(packed))))
        for name, array in {
            "input_ids": expected.tokens,
            "labels": expected.labels,
            "position_ids": expected.input_pos,
            "segment_ids": expected.segment_ids,
            "cu_seqlens": expected.cu_seqlens,
            "mask": expected.mask(),
        }.items():
            assert batch[name].tolist() == array.tolist()
        assert batch["max_seqlen"] == expected.max_seqlen
        assert batch["cu_seqlens"].dtype == torch.int32
        assert batch["mask"].dtype == torch.bool
        count += len(batch["labels"])
    assert count == len(packed)


def test_a_batch_without_a_mask(packed: PackedSequences) -> None:
    dataset = PackDataset(packed)
    batch = collate_flat([dataset[0], dataset[1]])
    assert list(batch) == ["input_ids", "labels", "position_ids", "segment_ids", "cu_seqlens", "max_seqlen"]


def test_names_are_checked(packed: PackedSequences) -> None:
    with pytest.raises(ArgumentError, match="names must be one of transformers, torchtune, got 'hf'"):
        PackDataset(packed, "hf")
