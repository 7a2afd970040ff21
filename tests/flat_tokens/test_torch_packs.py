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

from flat_tokens.packs.pack import Pack  # noqa: E402
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
        labels = pack.labels.copy()
        labels[first_places(pack)] = -100
        expected = (pack.tokens, labels, pack.input_pos, pack.seq_lens, pack.segment_ids)
        for tensor, array in zip(item.values(), expected, strict=True):
            assert tensor.tolist() == array.tolist()
    with pytest.raises(IndexError, match=r"pack \d+ is outside"):
        dataset[len(packed)]


def first_places(pack: Pack) -> list[int]:
    """Where the sequences of a pack begin."""
    return [0, *(at for at in pack.cu_seqlens.tolist()[1:-1] if at < pack.token_count)]


@pytest.mark.parametrize("split", [False, True])
def test_pairs_of_fields(split: bool, make_dataset: Callable[..., Path], random_sequences: Any) -> None:
    train = flat_tokens.open(make_dataset(random_sequences(0, 60))).train
    packed = PackedSequences(train, 12, padding_id=3, split_across_pack=split)
    unshifted = PackDataset(packed, fields=("input_ids", "labels", "is_seq_start", "positions"))
    kept = PackDataset(packed, fields=("labels",), ignore_first_labels=False)
    shifted = PackDataset(packed, fields=("inputs", "targets"))
    for index, pack in enumerate(packed):
        firsts, tokens = first_places(pack), pack.tokens.tolist()
        inputs = [0 if at in firsts else tokens[at - 1] for at in range(12)]
        item = unshifted[index]
        assert list(item) == ["input_ids", "labels", "is_seq_start", "positions"]
        assert item["input_ids"].tolist() == tokens
        assert item["positions"].tolist() == pack.input_pos.tolist()
        assert item["is_seq_start"].nonzero().flatten().tolist() == firsts
        ignored = [at in firsts or at >= pack.token_count for at in range(12)]
        assert item["labels"].tolist() == [-100 if ignored[at] else tokens[at] for at in range(12)]
        assert kept[index]["labels"].tolist() == pack.labels.tolist()
        assert shifted[index]["inputs"].tolist() == inputs
        assert shifted[index]["targets"].tolist() == pack.labels.tolist()


@pytest.mark.parametrize("workers", [None, "fork", "spawn"])
def test_batches_are_those_of_the_packs(workers: str | None, packed: PackedSequences) -> None:
    if workers == "fork" and sys.platform == "darwin":
        pytest.skip("fork is not safe there")
    loader = DataLoader(
        PackDataset(
            packed, fields=("input_ids", "labels", "position_ids", "segment_ids", "seq_lens", "mask")
        ),
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


def test_nothing_dense_is_made_unless_it_is_named(packed: PackedSequences) -> None:
    dataset = PackDataset(packed)
    for items in ([dataset[0], dataset[1]], dataset.__getitems__([0, 1])):
        batch = collate_packs(items)
        assert list(batch) == [
            "input_ids",
            "labels",
            "position_ids",
            "segment_ids",
            "cu_seqlens",
            "max_seqlen",
        ]
        assert batch["cu_seqlens"].tolist() == packed.batch([0, 1]).cu_seqlens.tolist()
    assert collate_flat is collate_packs
    few = PackDataset(packed, fields=("input_ids", "labels"))
    assert list(collate_packs([few[0], few[1]])) == ["input_ids", "labels"]


def test_names_are_checked(packed: PackedSequences) -> None:
    with pytest.raises(ArgumentError, match="names must be one of transformers, torchtune, got 'hf'"):
        PackDataset(packed, "hf")
    with pytest.raises(ArgumentError, match="fields may be input_ids, labels, .*seq_lens.* got 'masks'"):
        PackDataset(packed, fields=("masks",))
    with pytest.raises(ArgumentError, match="fields must not have both tokens and targets"):
        PackDataset(packed, fields=("tokens", "targets"))
