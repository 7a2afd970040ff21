"""drop_last=False: an epoch has every token exactly once, over any number of hosts, in batches of one shape."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from small_datasets import numbered

import flat_tokens
from flat_tokens import ArgumentError, Loader, Mixture, PackedSequences
from flat_tokens.fields import Fields
from flat_tokens.storage.layout import ArrayLayout

HOSTS = (1, 2, 3, 5, 8, 16, 32)


def split(make_dataset: Any, sequences: list[list[int]], compression: str = "zstd") -> Any:
    layout = ArrayLayout.create(2, 16, compression=compression)
    return flat_tokens.open(make_dataset(sequences, layout=layout)).train


LENGTHS = np.random.default_rng(5).integers(1, 30, 23).tolist()


def source_of(train: Any, kind: str, seq_len: int) -> tuple[Any, dict[str, Any]]:
    if kind in ("sequences", "truncated"):
        long = "truncate" if kind == "truncated" else "split"
        return train, {"packed": False, "long_sequences": long}
    if kind == "rows":
        return train, {}
    return PackedSequences(train, seq_len, strategy=kind, split_across_pack=True), {}


@pytest.mark.slow
@pytest.mark.promise("epochs")
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", ["rows", "raw", "sequences", "greedy", "best-fit"])
@pytest.mark.parametrize("hosts", HOSTS)
def test_every_token_once(make_dataset: Any, kind: str, hosts: int, shuffle: bool) -> None:
    train = split(make_dataset, numbered(LENGTHS, 1), "none" if kind == "raw" else "zstd")
    source, options = source_of(train, "rows" if kind == "raw" else kind, 7)
    options |= {"drop_last": False, "shuffle": shuffle, "block_tokens": 21}
    for batch_size in (1, 2, 5, 64):
        whole = Loader(source, 7, batch_size, 3, **options)
        parts = [Loader(source, 7, batch_size, 3, rank=i, world_size=hosts, **options) for i in range(hosts)]
        assert {len(part) for part in parts} == {len(whole)}
        seen: Counter[int] = Counter()
        for step, batches in enumerate(zip(*parts, strict=True)):
            shapes = {batch.targets.shape for batch in batches}
            assert shapes == {(-(-batch_size // hosts), 7)}
            made = [Fields(("targets", "lengths")).make(batch, np.int64) for batch in batches]
            for fields in made:
                is_token = np.arange(7) < fields["lengths"][:, None]
                assert ((fields["targets"] != -100) == is_token).all()
                seen.update(fields["targets"][is_token].tolist())
            expected = whole.batch(step)
            for name in ("inputs", "targets", "is_seq_start", "is_padding"):
                together = np.concatenate([getattr(batch, name) for batch in batches])[:batch_size]
                assert np.array_equal(together, getattr(expected, name)), name
        assert seen == Counter(range(1, sum(LENGTHS) + 1))
        again = {id for step in range(len(whole), 2 * len(whole)) for id in ids_of(whole, step)}
        assert again == set(seen)  # the next epoch has all of them too


def ids_of(loader: Loader, step: int) -> list[int]:
    batch = loader.batch(step)
    return batch.targets[~batch.is_padding].tolist()


def test_a_rank_of_padding_alone_with_truncated_sequences_was_an_index_error(make_dataset: Any) -> None:
    train = split(make_dataset, numbered([3, 9, 4], 1))
    source, options = source_of(train, "truncated", 7)
    ranks = [Loader(source, 7, 2, drop_last=False, rank=i, world_size=3, **options) for i in range(3)]
    seen = sorted(token for rank in ranks for step in range(len(rank)) for token in ids_of(rank, step))
    assert seen == [*range(1, 11), *range(13, 17)]  # 11 and 12 do not fit the row
    assert [ids_of(ranks[2], step) for step in range(2)] == [[], []]


@pytest.mark.parametrize("kind", ["rows", "sequences", "greedy"])
def test_a_loop_over_a_loader_trained_on_padding(make_dataset: Any, kind: str) -> None:
    """Targets at padding were padding_id for a split without a loss mask, and -100 in adapters and with a mask."""
    train = split(make_dataset, numbered(LENGTHS, 1))
    source, options = source_of(train, kind, 32)
    loader = Loader(source, 32, 4, padding_id=5, drop_last=False, **options)
    batches = list(loader)
    assert any(batch.is_padding.any() for batch in batches)
    for batch in batches:
        assert np.array_equal(batch.targets, np.where(batch.is_padding, -100, batch.ids))
        assert np.array_equal(batch.targets, Fields(("targets",)).make(batch, np.int64)["targets"])
    for dtype in ("uint16", "uint32"):
        with pytest.raises(ArgumentError, match=f"dtype: .*{dtype}"):
            Loader(source, 32, 4, drop_last=False, dtype=dtype, **options)


def test_labels_were_named_inputs(make_dataset: Any) -> None:
    train = split(make_dataset, numbered(LENGTHS, 1))
    batch = Loader(train, 5, 2).cut_as(np.int64, True).batch(0)
    assert batch.cut_labels is not None
    for read in (lambda: batch.inputs, batch.as_dict, lambda: list(batch)):
        with pytest.raises(ArgumentError):
            read()


@pytest.mark.parametrize(
    "sequences", [[[7]], [[1, 2, 3]], [[1] * 50]], ids=["a token", "a row", "a long one"]
)
def test_very_small_splits(make_dataset: Any, sequences: list[list[int]]) -> None:
    train = split(make_dataset, sequences)
    for batch_size, hosts in ((1, 1), (3, 8), (8, 3)):
        parts = [
            Loader(train, 8, batch_size, drop_last=False, rank=i, world_size=hosts) for i in range(hosts)
        ]
        found = [
            token for part in parts for batch in part for token in batch.targets[~batch.is_padding].tolist()
        ]
        assert found == sequences[0]
    losses = Loader(train, 8, 3, drop_last=False).losses()
    assert (losses.tokens_in_rows, losses.tokens_in_tail, losses.rows_left_out) == (len(sequences[0]), 0, 0)
    assert losses.padding == -len(sequences[0]) % 8


def test_an_empty_split(make_dataset: Any) -> None:
    train = split(make_dataset, [])
    for source in (train, PackedSequences(train, 4)):
        loader = Loader(source, 4, 2, drop_last=False)
        assert len(loader) == 0
        assert list(loader) == list(loader.from_step(0, 0)) == []
        for call in (lambda loader=loader: loader.batch(0), lambda loader=loader: loader.from_step(0)):
            with pytest.raises(ArgumentError, match="train"):
                call()
        with pytest.raises(ArgumentError):
            Loader(source, 4, 2)


def test_errors(make_dataset: Any) -> None:
    train = split(make_dataset, numbered([5] * 24))
    with pytest.raises(ArgumentError):
        Mixture([train], [1], 5, 2, drop_last=False)
    with pytest.raises(ArgumentError, match="drop_last"):
        Loader(train, 5, 2, drop_last="no")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="seq_len.*max_seq_len"):
        Loader(PackedSequences(train, 8), 5, 2)
    with pytest.raises(ArgumentError, match="max_seq_len"):
        Loader(PackedSequences(train, 4), 4, 2)
