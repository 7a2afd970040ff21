"""A dataset that is replaced while it is read: no reader mixes the two."""

from __future__ import annotations

import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flat_tokens
from flat_tokens import opening, verify
from flat_tokens.errors import DatasetError
from flat_tokens.storage.files import open_regular
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.opened_manifest import OpenedManifest
from flat_tokens.storage.versions import Version, describe_part, part_path, write_version
from tests.flat_tokens.counting_store import CountingStore, copy_dataset
from tests.flat_tokens.in_threads import in_threads
from tests.flat_tokens.small_datasets import write_dataset
from tokenmill.stores import open_store

LAYOUTS = {
    "2-raw": ArrayLayout(2, 1024, 1024, "none", 0),
    "2-zstd": ArrayLayout(2, 512, 512, "zstd"),
    "3-raw": ArrayLayout(3, 256, 1024, "none", 0),
    "3-zstd": ArrayLayout(3, 256, 1024, "zstd"),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
COUNTS = {"train_sequences": 200, "train_tokens": 1, "validation_sequences": 0, "validation_tokens": 0}
OLD, NEW = 4, 5  # the only id of each


def write(root: Path, id_: int, layout: ArrayLayout) -> Path:
    """Datasets of all ids have equal counts."""
    lengths = np.random.default_rng(5).integers(1, 90, 200).tolist()
    sequences = [[id_] * (length - 1) + [9] for length in lengths]
    write_dataset(root, sequences, [], layout, sources=[{"path": f"{id_}.txt", "bytes": 3} | COUNTS])
    return root


def write_grown(root: Path, id_: int, layout: ArrayLayout) -> None:
    """One with a part that was appended."""
    write(root, id_, layout)
    write(root / part_path(1), id_, layout)
    write_version(
        open_store(str(root)), Version(1, (describe_part(root, ""), describe_part(root, part_path(1))))
    )


def replace(root: Path, other: Path) -> None:
    """As `convert --overwrite` does."""
    root.rename(root.with_name("replaced"))
    other.rename(root)
    shutil.rmtree(root.with_name("replaced"))


def is_old(ids: Any) -> bool:
    return not set(np.ravel(ids).tolist()) - {OLD, 9}


@every_layout
@pytest.mark.parametrize("read_before", [0, 1, 3])
def test_a_folder_that_is_replaced_is_told(
    tmp_path: Path, layout: ArrayLayout, read_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A reader that is ahead would find no manifest between the two renames, and tell of that.
    whole, check = threading.Lock(), OpenedManifest.check

    def check_whole(opened: OpenedManifest) -> None:
        with whole:
            check(opened)

    monkeypatch.setattr(OpenedManifest, "check", check_whole)
    root, other = write(tmp_path / "a", OLD, layout), write(tmp_path / "b", NEW, layout)
    dataset = flat_tokens.open(root)
    copy = pickle.loads(pickle.dumps(dataset))
    batches = iter(flat_tokens.Loader(dataset.train, 64, 4, seed=1))
    for _ in range(read_before):
        assert is_old(next(batches).targets)
    with whole:
        replace(root, other)
    try:
        for batch in batches:
            assert is_old(batch.targets)
    except DatasetError as error:
        assert "manifest.json: " in str(error)  # noqa: PT017
    else:
        assert read_before  # all files may have been opened by then
    for number in range(200):
        with pytest.raises(DatasetError):
            copy.train.sequence(number)
    with pytest.raises(DatasetError):
        dataset.train.sequence_sources.counts()
    with pytest.raises(DatasetError):
        _ = dataset.manifest
    assert set(flat_tokens.open(root).train.sequence(0).tolist()) <= {NEW, 9}


@every_layout
def test_a_folder_that_is_removed_is_told(tmp_path: Path, layout: ArrayLayout) -> None:
    dataset = flat_tokens.open(write(tmp_path / "a", OLD, layout))
    shutil.rmtree(dataset.path)
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        dataset.train.sequence(150)


@every_layout
def test_a_folder_that_is_copied_to_its_place_is_the_same(tmp_path: Path, layout: ArrayLayout) -> None:
    dataset = flat_tokens.open(write(tmp_path / "a", OLD, layout))
    shutil.copytree(dataset.path, tmp_path / "b")
    replace(tmp_path / "a", tmp_path / "b")
    assert all(is_old(sequence) for sequence in dataset.train)


def test_a_shard_that_is_open_is_of_the_dataset_that_was_opened(tmp_path: Path) -> None:
    """It was opened anew for each zarr chunk, and the manifest with it."""
    root, other = (write(tmp_path / name, id_, LAYOUTS["3-zstd"]) for name, id_ in (("a", OLD), ("b", NEW)))
    tokens = flat_tokens.open(root).train.encoded_tokens
    with tokens.expecting((0,), (len(tokens),)):
        assert is_old(tokens.read(0, 200) >> 1)
        replace(root, other)
        assert is_old(tokens.read(300, 1000) >> 1)
        with pytest.raises(DatasetError):
            tokens.read(1100, 1200)
        with tokens.expecting((0,), (9,)), pytest.raises(DatasetError):
            tokens.read(2100, 2200)
    with pytest.raises(DatasetError):
        tokens.read(3100, 3200)


def test_a_shard_is_opened_once_by_each_thread_that_goes_through_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def counted(path: str) -> Any:
        opened.append(path)
        return open_regular(path)

    tokens = flat_tokens.open(write(tmp_path / "a", OLD, LAYOUTS["3-zstd"])).train.encoded_tokens
    whole = tokens.read(0, len(tokens))
    monkeypatch.setattr("flat_tokens.storage.shards.open_regular", counted)
    turn, count, shards = threading.Barrier(2), -(-len(tokens) // 256), -(-len(tokens) // 1024)

    def go_through(thread: int) -> None:
        found = np.empty(len(tokens), np.uint32)
        with tokens.expecting((0,), (len(tokens),)):
            for number in range(count) if thread else reversed(range(count)):
                turn.wait(10)
                at = slice(number * 256, (number + 1) * 256)
                tokens.read_into(at.start, found[at])
        assert np.array_equal(found, whole)

    in_threads(2, go_through)
    assert len(opened) <= 2 * shards


def test_a_context_that_another_thread_left_keeps_no_shard_open(tmp_path: Path) -> None:
    tokens = flat_tokens.open(write(tmp_path / "a", OLD, LAYOUTS["3-zstd"])).train.encoded_tokens
    blocks = tokens.blocks(0, len(tokens))
    whole = [next(blocks)[1].copy()]
    leaving = threading.Thread(target=blocks.close)
    leaving.start()
    leaving.join()
    before = len(list(Path("/proc/self/fd").iterdir()))
    others = tokens.blocks(256, len(tokens))
    whole += [values.copy() for _, values in others]
    assert np.array_equal(np.concatenate(whole), tokens.read(0, len(tokens)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@every_layout
def test_a_store_is_looked_at_with_each_shard(tmp_path: Path, layout: ArrayLayout) -> None:
    """It was at most each 10 s: what was opened within them was of the new dataset."""
    store = CountingStore(open_store(f"memory://replaced/{tmp_path.name}"))
    copy_dataset(write(tmp_path / "a", OLD, layout), store)
    dataset = flat_tokens.open(store)
    first = dataset.train.sequence(0)
    assert is_old(first)
    heads = store.requests["head"]
    assert dataset.train.sequence(0).tolist() == first.tolist()
    if layout.zarr_format == 3:
        assert store.requests["head"] == heads, "a shard that is known was asked for"
    copy_dataset(write(tmp_path / "b", NEW, layout), store)
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        dataset.train.sequence(199)
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        dataset.train.sequence_sources.counts()


@pytest.mark.parametrize("is_on_store", [False, True])
def test_verify_took_what_is_new_for_damage(tmp_path: Path, is_on_store: bool) -> None:
    layout = LAYOUTS["3-zstd"]
    root: Any = write(tmp_path / "a", OLD, layout)
    other = write(tmp_path / "b", NEW, layout)
    store = copy_dataset(root, open_store(f"memory://verified/{tmp_path.name}")) if is_on_store else None

    def replaced(*_: int) -> None:
        if other.exists():
            copy_dataset(other, store) if store is not None else None
            replace(root, other)

    with pytest.raises(DatasetError, match=r"manifest\.json"):
        flat_tokens.verify_dataset(store or root, progress=replaced)
    assert flat_tokens.verify_dataset(store or root).problems == ()


def test_verify_took_a_dataset_that_is_gone_for_trouble_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed as it went, it was "No such file or directory" of whatever came next, and exit code 4."""
    root = write(tmp_path / "a", OLD, LAYOUTS["2-zstd"])
    plain = verify.walk

    def gone_behind_the_first(place: Any) -> Any:
        found = plain(place)
        yield next(found)
        root.rename(tmp_path / "elsewhere")
        yield from found

    monkeypatch.setattr(verify, "walk", gone_behind_the_first)
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        flat_tokens.verify_dataset(root)


def test_places_of_another_dataset_were_told_as_a_wrong_number(tmp_path: Path) -> None:
    root, other = write(tmp_path / "a", OLD, LAYOUTS["2-zstd"]), tmp_path / "b"
    write_dataset(other, [[NEW]], [], LAYOUTS["2-zstd"], sources=[{"path": "n.txt", "bytes": 3} | COUNTS])
    dataset = flat_tokens.open(root)
    replace(root, other)
    with pytest.raises(DatasetError):
        dataset.train.source_of(0)


def test_what_follows_from_a_replacement_is_not_told_in_its_place(tmp_path: Path) -> None:
    """Also on a store that was not to be looked at yet."""
    store = open_store(f"memory://replaced/{tmp_path.name}")
    copy_dataset(write(tmp_path / "a", OLD, LAYOUTS["3-zstd"]), store)
    dataset = flat_tokens.open(store)
    store.delete([entry.key for entry in store.list() if "/c/" in entry.key or entry.key == "manifest.json"])
    with pytest.raises(DatasetError, match=r"manifest\.json"):
        dataset.train.sequence(199)


@every_layout
def test_parts_of_a_version_are_of_the_dataset_that_was_opened(tmp_path: Path, layout: ArrayLayout) -> None:
    for name, id_ in (("a", OLD), ("b", NEW)):
        write_grown(tmp_path / name, id_, layout)
    for number in (0, 1):
        dataset = flat_tokens.open(tmp_path / "a", version=number)
        assert is_old(dataset.train.sequence(0))
        shutil.copytree(tmp_path / "a", tmp_path / "kept")
        shutil.copytree(tmp_path / "b", tmp_path / "other")
        replace(tmp_path / "a", tmp_path / "other")
        with pytest.raises(DatasetError):
            dataset.train.sequence(dataset.train.seq_count - 1)
        replace(tmp_path / "a", tmp_path / "kept")


def test_parts_of_two_datasets_were_opened_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, id_ in (("a", OLD), ("b", NEW)):
        write_grown(tmp_path / name, id_, LAYOUTS["3-zstd"])
    plain, opened = opening.open_by_files, []

    def replaced_behind_the_first(place: Any) -> Any:
        opened.append(plain(place))
        if len(opened) == 1:
            replace(tmp_path / "a", tmp_path / "b")
        return opened[-1]

    monkeypatch.setattr(opening, "open_by_files", replaced_behind_the_first)
    with pytest.raises(DatasetError, match=r"versions/1\.json"):
        flat_tokens.open(tmp_path / "a")
    assert not is_old(flat_tokens.open(tmp_path / "a").train.sequence(0))
