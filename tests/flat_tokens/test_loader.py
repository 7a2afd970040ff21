"""The loader: batches equal those cut by hand, from any step, on any number of hosts, in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens.errors import ArgumentError, DatasetError
from flat_tokens.loading.loader import Loader
from flat_tokens.storage.layout import ArrayLayout

OPTIONS = {"block_tokens": 40, "shuffle_blocks": 4}


def split(make_dataset: Any, random_sequences: Any, layout: ArrayLayout | None = None, **kinds: Any) -> Any:
    sequences = random_sequences(11, kinds.pop("count", 150), **{"longest": 12, "largest_id": 27, **kinds})
    return flat_tokens.open(make_dataset(sequences, layout=layout or ArrayLayout.create(2, 16))).train


def test_epochs_and_seeds_differ(make_dataset: Any, random_sequences: Any) -> None:
    train = split(make_dataset, random_sequences)
    loader, other = (Loader(train, 4, 8, seed, **OPTIONS) for seed in (0, 1))
    epochs = [
        np.concatenate([loader.rows_of(e * len(loader) + i) for i in range(len(loader))]) for e in (0, 1)
    ]
    assert not np.array_equal(*epochs)
    assert not np.array_equal(loader.rows_of(0), other.rows_of(0))
    plain = Loader(train, 4, 8, shuffle=False)
    assert plain.rows_of(1).tolist() == list(range(8, 16))
    assert plain.rows_of(len(plain)).tolist() == list(range(8))


@pytest.mark.promise("checksums")
def test_the_first_read_of_a_chunk_compares_its_checksum(make_dataset: Any) -> None:
    # 64 Ki tokens per Zarr chunk: two zstd blocks; the batch needs only the first.
    sequences = np.random.default_rng(3).integers(0, 50_000, (130, 1000)).tolist()
    path = make_dataset(sequences, layout=ArrayLayout.create(2, 2**16))
    file = path / "train/encoded_tokens/0"
    payload = bytearray(file.read_bytes())
    options: Any = {"shuffle": False, "streams": 1}
    loader = Loader(flat_tokens.open(path).train, 1000, 1, **options)
    for step in (3, 7):
        assert loader.batch(step).targets[0].tolist() == sequences[step]
    payload[-1] ^= 1  # in the checksum
    reads: list[Any] = [
        lambda train: Loader(train, 1000, 1, **options).batch(3),
        lambda train: next(Loader(train, 1000, 1, **options).from_step(3)),
        lambda train: train.row(3, 9),
    ]
    for damaged in (payload, payload[:-1]):
        file.write_bytes(damaged)
        for read in reads:
            with pytest.raises(DatasetError, match="encoded_tokens/0"):
                read(flat_tokens.open(path).train)


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("prefetch", [True, False])
def test_one_step_reads_only_its_own_rows(
    make_dataset: Any, random_sequences: Any, compression: str, prefetch: bool
) -> None:
    train = split(make_dataset, random_sequences, ArrayLayout.create(2, 16, compression=compression))
    loader = Loader(train, 5, 4, 3, **OPTIONS)
    expected = loader.batch(3).targets
    needed = {
        at // 16 for row in loader.rows_of(3).tolist() for at in range(max(0, row * 5 - 1), row * 5 + 5)
    }
    for file in (train.path / "encoded_tokens").iterdir():
        if file.name.isdigit() and int(file.name) not in needed:
            file.unlink()
    loader = Loader(flat_tokens.open(train.path.parent).train, 5, 4, 3, **OPTIONS)
    found = list(loader.from_step(3, 4, prefetch=prefetch))
    assert len(found) == 1
    assert np.array_equal(found[0].targets, expected)
    assert len(list(loader.from_step(3, 3, prefetch=prefetch))) == 0


def test_steps_past_64_bits_repeated_earlier_ones(make_dataset: Any, random_sequences: Any) -> None:
    """Draw numbers wrapped around, so step 2^62 equalled step 0; from 2^63 on there was an IndexError."""
    loader = Loader(split(make_dataset, random_sequences), 4, 8, **OPTIONS)
    assert len(loader.batch(2**57)) == 8
    for step in (2**61, 2**62, 2**63, 2**64, 10**30):
        for call in (loader.batch, loader.rows_of, loader.from_step):
            with pytest.raises(ArgumentError, match=f"step.*{step}"):
                call(step)
