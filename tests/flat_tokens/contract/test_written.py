"""Writer: zarr reads the arrays of the format, and a failed write leaves no files."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_datasets import EXAMPLE, TOKENIZER, from_sequences, write_dataset
from strategies import examples

import flat_tokens
from flat_tokens import writer as low_level
from flat_tokens.errors import ArgumentError, DatasetError, RefusedError
from tests.flat_tokens.contract.drawn_datasets import (
    Drawn,
    Sequences,
    bits_of,
    content,
    cut,
    datasets,
    files_of,
    new_store,
    sequences,
)
from tokenmill.stores import AlreadyThere, open_store


@given(datasets(), st.lists(st.integers(0, 40), max_size=20))
@examples(0.5)
def test_the_bytes_do_not_depend_on_the_calls(drawn: Drawn, lengths: list[int]) -> None:
    with TemporaryDirectory() as folder:
        one, many = Path(folder, "one"), Path(folder, "many")
        drawn.write(one)
        has_mask = drawn.masks is not None
        with flat_tokens.Writer(many, layout=drawn.layout, has_mask=has_mask, sources=drawn.facts) as writer:
            for split, rows in drawn.splits.items():
                ids = [id_ for row in rows for id_ in row]
                mask = np.array(bits_of(drawn.masks[split]) if drawn.masks else [], bool)
                ends, at = np.cumsum([len(row) for row in rows], dtype=np.int64), 0
                for part in cut(ids, lengths):
                    own = ends[(ends > at) & (ends <= at + len(part))] - at
                    trained = mask[at : at + len(part)] if has_mask else None
                    writer.add_many(split, np.array(part, np.uint32), own, trained)
                    at += len(part)
        for path in files_of(one):
            assert (many / path.relative_to(one)).read_bytes() == path.read_bytes(), path


@given(datasets(formats=(3,)))
@examples(0.5)
def test_a_store_has_the_files_of_a_folder(drawn: Drawn) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    store = new_store()
    with TemporaryDirectory() as folder:
        root = Path(folder, "d")
        drawn.write(root)
        drawn.write(store)
        found = {entry.key: bytes(store.read(entry.key)) for entry in store.list()}
        assert found == {str(path.relative_to(root)): path.read_bytes() for path in files_of(root)}
    assert content(store) == drawn.splits
    with pytest.raises(RefusedError):
        drawn.write(store)
    assert {entry.key for entry in store.list()} == set(found)


@given(sequences(largest=28, least=0))
@examples(0.5)
def test_empty_sequences_are_counted_and_left_out(rows: Sequences) -> None:
    with TemporaryDirectory() as folder:
        with flat_tokens.Writer(Path(folder, "d")) as writer:
            for ids in rows:
                writer.add("train", ids)
        assert content(Path(folder, "d"))["train"] == [ids for ids in rows if ids]
        manifest = flat_tokens.open(Path(folder, "d")).manifest
        assert manifest is not None
        assert manifest.options["documents"] == {"train": len(rows), "validation": 0}
        assert manifest.options["empty_documents"] == {"train": sum(not ids for ids in rows), "validation": 0}


class Saved:
    """A tokenizer in memory."""

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(TOKENIZER))

    def fingerprint(self) -> str:
        return "f" * 64


@pytest.mark.parametrize("is_object", [True, False])
def test_the_tokenizer_is_stored_and_checks_the_ids(tmp_path: Path, is_object: bool) -> None:
    Saved().save(tmp_path / "tokenizer.json")
    tokenizer: Any = Saved() if is_object else str(tmp_path / "tokenizer.json")
    with flat_tokens.Writer(
        tmp_path / "d", tokenizer, sources=[{"path": "a"}], options={"seed": 1}
    ) as writer:
        writer.add("train", [28])
        with pytest.raises(ArgumentError, match=r"^ids: .*\[0, 28\]"):
            writer.add("train", [29])
    dataset = flat_tokens.open(tmp_path / "d", tokenizer=tokenizer)
    assert dataset.tokenizer_path == tmp_path / "d/tokenizer.json"
    assert dataset.vocab_size == 29
    assert content(tmp_path / "d")["train"] == [[28]]


@pytest.mark.parametrize("place", ["folder", "store"])
@pytest.mark.parametrize("fault", ["error", "no end"])
def test_nothing_is_left_after_an_error(tmp_path: Path, place: str, fault: str) -> None:
    root: Any = tmp_path / "d" if place == "folder" else new_store()

    def write() -> None:
        with flat_tokens.Writer(root) as writer:
            writer.add_many("train", np.arange(100), [10])
            if fault == "error":
                raise ZeroDivisionError

    with pytest.raises((ZeroDivisionError, ArgumentError)):
        write()
    assert list(tmp_path.iterdir()) == []
    assert place == "folder" or list(root.list()) == []


@pytest.mark.promise("overwrite")
def test_a_dataset_is_replaced_only_on_request(tmp_path: Path) -> None:
    root = tmp_path / "d"
    for overwrite, ids in ((False, [1]), (True, [2])):
        with flat_tokens.Writer(root, overwrite=overwrite) as writer:
            writer.add("train", ids)
    assert content(root)["train"] == [[2]]
    with pytest.raises(RefusedError):
        flat_tokens.Writer(root)
    (root / "notes.txt").write_text("mine")
    with pytest.raises(RefusedError, match=r"notes\.txt"):
        flat_tokens.Writer(root, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d"]


def test_objects_of_others_stay_after_an_error() -> None:
    store = new_store()
    writer = flat_tokens.Writer(store)
    writer.add("train", [1])
    for name in ("manifest.json", "other/data"):
        store.put(name, b"theirs")
    with pytest.raises(AlreadyThere):
        writer.close()
    assert bytes(store.read("manifest.json")) == bytes(store.read("other/data")) == b"theirs"


def test_a_closed_writer_rejects_tokens(tmp_path: Path) -> None:
    with flat_tokens.Writer(tmp_path / "d") as writer:
        writer.add("train", [1])
        writer.close()
        with pytest.raises(ArgumentError, match="closed"):
            writer.add("train", [5])
    failed = flat_tokens.Writer(tmp_path / "e")
    failed.add_many("validation", [1, 2], [1])
    for _ in range(2):
        with pytest.raises(ArgumentError):
            failed.close()


def test_a_layout_that_stores_do_not_have() -> None:
    with pytest.raises(ArgumentError, match="layout"):
        flat_tokens.Writer(new_store(), layout=flat_tokens.ArrayLayout.create(2))


@pytest.mark.promise("one-run")
def test_only_one_writer_at_a_time(tmp_path: Path) -> None:
    for root in (tmp_path / "d", new_store()):
        with flat_tokens.Writer(root) as writer:
            with pytest.raises(RefusedError):
                flat_tokens.Writer(root)
            writer.add("train", [1])
        assert content(root)["train"] == [[1]]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("test", [1]), "split"),
        (("train", [-1]), "ids"),
        (("train", [2**31]), "ids"),
        (("train", [0.5]), "ids"),
        (("train", [[1]]), "ids"),
        (("train", 7), "ids"),
        (("train", [1, 2], [True]), "train: loss_mask"),
        (("train", [1, 2], [0, 1]), "train: loss_mask"),
    ],
)
def test_wrong_calls_add_nothing(arguments: Any, name: str, tmp_path: Path) -> None:
    with flat_tokens.Writer(tmp_path / "d", has_mask=True) as writer:
        writer.add("train", [5])
        with pytest.raises(ArgumentError, match=rf"^{name}\b"):
            writer.add(*arguments)
        for ends in ([3], [-1], [2, 1], [0.5]):
            with pytest.raises(ArgumentError, match=r"^ends\b"):
                writer.add_many("train", [1, 2], ends)
    assert content(tmp_path / "d") == {"train": [[5]], "validation": []}


def test_masks_need_has_mask(tmp_path: Path) -> None:
    with flat_tokens.Writer(tmp_path / "d") as writer, pytest.raises(ArgumentError, match="has_mask"):
        writer.add("train", [1], [True])


@pytest.mark.promise("memory")
def test_memory_is_bounded_by_the_layout(tmp_path: Path) -> None:
    """16 million tokens in units of 64 Ki, so the peak is far below their 64 MB."""
    import tracemalloc

    ids = np.zeros(2**16, np.uint32)
    tracemalloc.start()
    try:
        with flat_tokens.Writer(tmp_path / "d") as writer:
            for _ in range(256):
                writer.add_many("train", ids, [len(ids)])
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_verification_finds_lost_writes(tmp_path: Path) -> None:
    """A file that changes before the context exits."""
    writer = flat_tokens.Writer(tmp_path / "d", layout=flat_tokens.ArrayLayout.create(2, 8))
    writer.add("train", range(20))
    next(tmp_path.rglob("encoded_tokens/0")).write_bytes(b"lost")
    with pytest.raises(DatasetError, match="train/encoded_tokens/0"):
        writer.close()
    assert list(tmp_path.iterdir()) == []


def test_the_first_manifest_wins(tmp_path: Path) -> None:
    store = new_store()
    layout = flat_tokens.ArrayLayout.create(3)
    write_dataset(store, EXAMPLE, [], layout)
    before = {entry.key: bytes(store.read(entry.key)) for entry in store.list()}
    with pytest.raises(AlreadyThere):
        write_dataset(store, EXAMPLE, [], layout)
    assert {entry.key: bytes(store.read(entry.key)) for entry in store.list()} == before
    for _ in range(2):  # for a folder, the caller does this
        write_dataset(tmp_path / "d", EXAMPLE, [], layout)


def write_run(
    url: str, options: dict[str, str], layout: flat_tokens.ArrayLayout, first: int, tokens: Any
) -> Any:
    return low_level.write_run(open_store(url, options), "train", layout, "encoded_tokens", first, tokens)


@pytest.mark.slow
def test_several_processes_write_one_split(moto: str, random_sequences: Any) -> None:
    """Each task runs twice, as if a worker was declared lost but continued to write."""
    from servers import BUCKET, s3_options

    options, url = s3_options(moto), f"s3://{BUCKET}/{uuid4().hex}/d.zarr"
    layout = flat_tokens.ArrayLayout.create(3, 16, 64)
    encoded, starts, largest = from_sequences(random_sequences(3, 100))
    store = open_store(url, options)
    records = low_level.create_split(store, "train", len(encoded), 100, largest, layout)
    records += low_level.create_split(store, "validation", 0, 0, 0, layout)
    records += low_level.write_run(store, "validation", layout, "seq_starts", 0, np.zeros(1, np.uint64))
    records += low_level.write_run(store, "train", layout, "seq_starts", 0, starts)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        runs = [
            pool.submit(write_run, url, options, layout, first, encoded[first : first + 64])
            for first in [*range(0, len(encoded), 64)] * 2
        ]
        for run in runs:
            records += [record for record in run.result() if record not in records]
    counts = {
        "train": low_level.SplitRecord(len(encoded), 100, largest),
        "validation": low_level.SplitRecord(0, 0, 0),
    }
    low_level.write_root(store, counts, records, layout)
    assert flat_tokens.verify_dataset(store).problems == ()
