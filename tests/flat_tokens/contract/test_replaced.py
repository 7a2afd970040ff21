"""A dataset replaced during reading: no reader returns new data, and the error names the cause."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import DatasetError, Loader
from flat_tokens.storage.layout import ArrayLayout
from tests.flat_tokens.counting_store import CountingStore, copy_dataset
from tests.flat_tokens.small_datasets import write_dataset
from tokenmill.stores import open_store

LAYOUTS = {
    "2-raw": ArrayLayout(2, 1024, 1024, "none", 0),
    "2-zstd": ArrayLayout(2, 512, 512, "zstd"),
    "3-raw": ArrayLayout(3, 256, 1024, "none", 0),
    "3-zstd": ArrayLayout(3, 256, 1024, "zstd"),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
OLD, NEW = 4, 5  # the only ID of each dataset, except for the last token of a sequence


def write(root: Path, id_: int, layout: ArrayLayout) -> Path:
    """Write a dataset; all of them have equal counts."""
    lengths = np.random.default_rng(5).integers(1, 90, 200).tolist()
    sequences = [[id_] * (length - 1) + [9] for length in lengths]
    source = {"path": f"{id_}.txt", "train_sequences": 200, "validation_sequences": 0}
    write_dataset(root, sequences, [], layout, sources=[source])
    return root


def replace(root: Path, other: Path) -> None:
    """Replace a dataset like `convert --overwrite`."""
    root.rename(root.with_name("replaced"))
    other.rename(root)
    shutil.rmtree(root.with_name("replaced"))


def is_old(ids: Any) -> bool:
    return not set(np.ravel(ids).tolist()) - {OLD, 9}


@every_layout
@pytest.mark.parametrize("read_before", [0, 1, 3])
def test_a_folder_is_replaced(tmp_path: Path, layout: ArrayLayout, read_before: int) -> None:
    root, other = write(tmp_path / "a", OLD, layout), write(tmp_path / "b", NEW, layout)
    dataset = flat_tokens.open(root)
    copy = pickle.loads(pickle.dumps(dataset))
    batches = iter(Loader(dataset.train, 64, 4, seed=1))
    for _ in range(read_before):
        assert is_old(next(batches).targets)
    replace(root, other)
    try:
        for batch in batches:
            assert is_old(batch.targets)
    except DatasetError as error:
        assert "manifest.json: " in str(error)  # noqa: PT017
    else:
        assert read_before  # all files may have been opened by then
    train = copy.train
    reads: list[Callable[[], object]] = [
        lambda: train.sequence(7),
        lambda: train.sequences([150, 3]),
        lambda: train.rows([5, 1], 20),
        lambda: Loader(train, 64, 4).batch(0),
        lambda: train.encoded_tokens[10:3000],
        lambda: list(train.encoded_tokens.blocks(0, 100)),
        lambda: dataset.train.source_of(0),
        lambda: dataset.manifest,
    ]
    for read in reads:
        with pytest.raises(DatasetError, match=r"manifest\.json: "):
            read()
    assert set(flat_tokens.open(root).train.sequence(0).tolist()) <= {NEW, 9}


@every_layout
def test_a_folder_is_removed(tmp_path: Path, layout: ArrayLayout) -> None:
    dataset = flat_tokens.open(write(tmp_path / "a", OLD, layout))
    shutil.rmtree(dataset.path)
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        dataset.train.sequence(150)


@every_layout
def test_an_equal_copy_is_accepted(tmp_path: Path, layout: ArrayLayout) -> None:
    dataset = flat_tokens.open(write(tmp_path / "a", OLD, layout))
    shutil.copytree(dataset.path, tmp_path / "b")
    replace(tmp_path / "a", tmp_path / "b")
    assert all(is_old(sequence) for sequence in dataset.train)


@every_layout
def test_objects_are_replaced(tmp_path: Path, layout: ArrayLayout) -> None:
    store = CountingStore(open_store(f"memory://replaced/{tmp_path.name}"))
    copy_dataset(write(tmp_path / "a", OLD, layout), store)
    dataset = flat_tokens.open(store)
    first = dataset.train.sequence(0)
    assert is_old(first)
    heads = store.requests["head"]
    assert dataset.train.sequence(0).tolist() == first.tolist()
    if layout.zarr_format == 3:
        assert store.requests["head"] == heads, "a known shard was requested again"
    copy_dataset(write(tmp_path / "b", NEW, layout), store)
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        dataset.train.sequence(199)
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        dataset.train.source_of(0)


def test_objects_are_removed(tmp_path: Path) -> None:
    store = open_store(f"memory://removed/{tmp_path.name}")
    dataset = flat_tokens.open(copy_dataset(write(tmp_path / "a", OLD, LAYOUTS["3-zstd"]), store))
    store.delete([entry.key for entry in store.list() if "/c/" in entry.key or entry.key == "manifest.json"])
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        dataset.train.sequence(199)


@pytest.mark.parametrize("is_on_store", [False, True])
def test_verify_reports_no_damage(tmp_path: Path, is_on_store: bool) -> None:
    root: Any = write(tmp_path / "a", OLD, LAYOUTS["3-zstd"])
    other = write(tmp_path / "b", NEW, LAYOUTS["3-zstd"])
    store = copy_dataset(root, open_store(f"memory://verified/{tmp_path.name}")) if is_on_store else None

    def replace_once(*_: int) -> None:
        if other.exists():
            copy_dataset(other, store) if store is not None else None
            replace(root, other)

    with pytest.raises(DatasetError, match=r"manifest\.json"):
        flat_tokens.verify_dataset(store or root, progress=replace_once)
    assert flat_tokens.verify_dataset(store or root).problems == ()


def test_shards_do_not_stay_open(tmp_path: Path) -> None:
    tokens = flat_tokens.open(write(tmp_path / "a", OLD, LAYOUTS["3-zstd"])).train.encoded_tokens
    before = len(list(Path("/proc/self/fd").iterdir()))
    blocks = tokens.blocks(0, len(tokens))
    next(blocks)
    assert len(tokens.read(0, len(tokens))) == len(tokens)
    del blocks
    assert len(list(Path("/proc/self/fd").iterdir())) == before
