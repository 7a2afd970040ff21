"""Datasets on an object store are read like local ones, with few requests."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from counting_store import CountingStore, copy_dataset
from small_datasets import write_dataset

import flat_tokens
from flat_tokens import Loader
from flat_tokens.errors import ArgumentError, DatasetError
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.stores import StoreError, open_store

pytest.importorskip("obstore", reason="obstore is not installed")

Pair = tuple[flat_tokens.Dataset, flat_tokens.Dataset, CountingStore]


def new_store() -> CountingStore:
    return CountingStore(open_store(f"memory://{uuid4().hex}/d.zarr"))


def sequences(seed: int, count: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randint(0, 27) for _ in range(rng.randint(1, 30))] for _ in range(count)]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Return a dataset opened from a folder and from a store, and the store, which has counted the second opening."""
    root = tmp_path / "d.zarr"
    write_dataset(root, sequences(1, 900), sequences(2, 20), ArrayLayout.create(3, 64, 512))
    store = copy_dataset(root, new_store())
    store.requests.clear()
    return flat_tokens.open(root), flat_tokens.open(store), store


def test_opening_takes_one_request(pair: Pair) -> None:
    on_disk, dataset, store = pair
    assert store.requests == {"read": 1}
    for split in ("train", "validation"):
        for name in ("token_count", "seq_count", "max_token_id"):
            assert getattr(dataset[split], name) == getattr(on_disk[split], name)
    assert str(dataset.path) == store.url
    assert dataset.manifest == on_disk.manifest
    assert str(dataset.tokenizer_path) == f"{store.url}/tokenizer.json"


def assert_equal(mine: Any, other: Any) -> None:
    assert np.array_equal(mine.inputs, other.inputs)
    assert np.array_equal(mine.targets, other.targets)
    assert np.array_equal(mine.positions, other.positions)


def test_a_window_is_few_ranges_and_an_index_is_read_once(make_dataset: Any, random_sequences: Any) -> None:
    layout = ArrayLayout.create(3, 64, 1024)
    root = make_dataset(random_sequences(1, 900, 30), [], layout)
    store = copy_dataset(root, new_store())
    train = flat_tokens.open(store).train
    shards = -(-train.token_count // 1024)
    store.requests.clear()
    loader = Loader(train, seq_len=64, batch_size=4)  # one window covers the dataset
    list(loader)
    # Each shard's index, then the manifest, one range of each, and the rows of the first batch.
    assert store.requests["head"] == shards
    assert 2 * shards <= store.requests["read"] <= 2 * shards + 8
    store.requests.clear()
    assert len(loader.batch(3 * loader.steps_per_epoch).inputs) == 4
    assert store.requests["head"] == 0
    assert store.requests["read"] <= 8  # rows, including the preceding token
    store.requests.clear()
    train.encoded_tokens[:]
    assert store.requests == {"read": shards}
    again = flat_tokens.open(store).train
    store.requests.clear()
    again.sequence(5)
    # The index of one shard per array, then the manifest, and one Zarr chunk of each.
    assert store.requests == {"read": 4, "head": 2}


@pytest.mark.promise("complete")
def test_unfinished_datasets_are_not_opened(make_dataset: Any) -> None:
    root = make_dataset(layout=ArrayLayout.create(3))
    store = copy_dataset(root, new_store())
    store.delete(["manifest.json"])
    for open_it in (flat_tokens.open, flat_tokens.verify_dataset):
        with pytest.raises(DatasetError):
            open_it(store)


DAMAGE: dict[str, Callable[[Any], Any]] = {
    "object gone": lambda s: s.delete(["train/encoded_tokens/c/0"]),
    "object cut": lambda s: s.put("train/encoded_tokens/c/0", s.read("train/encoded_tokens/c/0", 0, 9)),
    "object empty": lambda s: s.put("train/encoded_tokens/c/0", b""),
    "flipped": lambda s: s.put("train/encoded_tokens/c/0", flipped(s.read("train/encoded_tokens/c/0"), 9)),
    "index flipped": (
        lambda s: s.put("train/encoded_tokens/c/0", flipped(s.read("train/encoded_tokens/c/0"), -9))
    ),
}


def flipped(data: Any, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 4
    return bytes(changed)


@pytest.mark.parametrize("damage", DAMAGE)
def test_errors_name_the_object(make_dataset: Any, damage: str) -> None:
    store = copy_dataset(make_dataset(layout=ArrayLayout.create(3, 4, 16)), new_store())
    train = flat_tokens.open(store).train
    DAMAGE[damage](store)
    loader = Loader(train, seq_len=2, batch_size=1)
    for read in (lambda: train.sequence(1), lambda: list(loader), lambda: train.rows([0, 1], 3)):
        with pytest.raises(DatasetError) as caught:
            read()
        assert str(caught.value).startswith(f"{store.url}/train/encoded_tokens/c/0: ")
        assert "\n" not in str(caught.value)


def test_a_manifest_without_a_layout(make_dataset: Any) -> None:
    root = make_dataset(layout=ArrayLayout.create(3))
    store = copy_dataset(root, new_store())
    manifest = flat_tokens.open(root).manifest
    assert manifest is not None
    object.__setattr__(manifest, "layout", {"chunks": 3})
    store.put("manifest.json", manifest.to_bytes())
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        flat_tokens.open(store)


# -- a real server, other processes


@pytest.fixture(scope="module")
def on_server(moto: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, str]]:
    """Return a dataset on a disk, its URL on an S3 server, and the storage options."""
    from servers import BUCKET, s3_options

    root = tmp_path_factory.mktemp("served") / "d.zarr"
    write_dataset(root, sequences(5, 600), sequences(6, 9), ArrayLayout.create(3, 64, 1024))
    url = f"s3://{BUCKET}/{uuid4().hex}/d.zarr"
    copy_dataset(root, open_store(url, s3_options(moto)))
    return root, url, s3_options(moto)


def test_a_loader_on_a_server(on_server: Any) -> None:
    root, url, options = on_server
    its = Loader(flat_tokens.open(url, storage_options=options).train, seq_len=32, batch_size=8)
    theirs = Loader(flat_tokens.open(root).train, seq_len=32, batch_size=8)
    for mine, other in zip(its, theirs, strict=True):
        assert_equal(mine, other)
    assert flat_tokens.open(url, root, options).train.seq_count == 600
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert_equal(pool.submit(pickle.loads(pickle.dumps(its)).batch, 7).result(), theirs.batch(7))


def test_a_forked_child_raises_an_error(on_server: Any) -> None:
    """The child would otherwise wait forever for threads that exist only in the parent."""
    _, url, options = on_server
    loader = Loader(flat_tokens.open(url, storage_options=options).train, seq_len=32, batch_size=8)
    loader.batch(0)
    process = get_context("fork").Process(target=exit_with_error_of, args=(loader,))
    process.start()
    process.join(30)
    assert process.exitcode == 4


def exit_with_error_of(loader: Loader) -> None:
    try:
        loader.batch(9)
    except StoreError as error:
        os._exit(error.exit_code if "forked" in str(error) else 1)
    os._exit(0)


def test_commands_on_a_server(on_server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from servers import BUCKET

    from flat_tokens.__main__ import main

    root, url, options = on_server
    given = [word for name, value in options.items() for word in ("--storage-option", f"{name}={value}")]
    for command in (["info"], ["head", "-n", "2"], ["verify", "--workers", "2"]):
        assert main([*command, url, *given]) == 0
        on_store = capsys.readouterr().out
        assert main([*command, str(root)]) == 0
        assert on_store.replace(url, "D") == capsys.readouterr().out.replace(str(root), "D")
    page = tmp_path / "page.html"
    assert main(["report", url, "-o", str(page), *given]) == 0
    assert "d.zarr" in page.read_text()
    capsys.readouterr()
    wrong = url.replace("d.zarr", "e.zarr")
    assert main(["info", wrong, *given]) == 3
    printed = capsys.readouterr().err
    assert printed.startswith(f"tokenmill: error: {wrong}: ")
    assert f"{wrong}/manifest.json" in printed
    assert printed.count("\n") == 1
    assert main(["verify", wrong.replace(BUCKET, "no-bucket"), *given]) == 3
    assert "s3://no-bucket" in capsys.readouterr().err
    assert main(["info", url.replace("s3:", "s9:")]) == 2
    capsys.readouterr()
    assert main(["info", url, "--storage-option", "region"]) == 2
    assert "--storage-option: " in capsys.readouterr().err


def test_a_cache_serves_the_second_epoch(pair: Pair, tmp_path: Path) -> None:
    on_disk, _, store = pair

    def epoch(dataset: flat_tokens.Dataset) -> list[list[int]]:
        return [batch.inputs.tolist() for batch in Loader(dataset.train, 4, 16, seed=1)]

    for _ in range(2):
        store.requests.clear()
        assert epoch(flat_tokens.open(store, cache_dir=tmp_path / "cache")) == epoch(on_disk)
    assert store.requests["read"] == 1  # the manifest
    with pytest.raises(ArgumentError, match="cache_dir"):
        flat_tokens.open(store, cache_dir=tmp_path / "d.zarr/manifest.json")


def test_raw_tokens_on_a_store_were_mapped_as_files(make_dataset: Any, random_sequences: Any) -> None:
    root = make_dataset(random_sequences(1, 900, 30), [], ArrayLayout.create(2, 4096, compression="none"))
    store = copy_dataset(root, new_store())
    its, theirs = (Loader(flat_tokens.open(source).train, 16, 8) for source in (store, root))
    for step, (mine, other) in enumerate(zip(its.from_step(0, 9), theirs.from_step(0, 9), strict=True)):
        assert_equal(mine, other)
        assert_equal(its.batch(step), other)
