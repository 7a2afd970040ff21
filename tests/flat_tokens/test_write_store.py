"""Writing to an object store: the objects equal the files of a folder, and of two manifests one wins."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from counting_store import CountingStore
from small_datasets import EXAMPLE, write_dataset

import flat_tokens
from flat_tokens import format as flat_format
from flat_tokens import writer
from flat_tokens.errors import ArgumentError
from flat_tokens.storage.layout import ArrayLayout
from tokenmill.stores import AlreadyThere, Store, open_store

pytest.importorskip("obstore", reason="obstore is not installed")


def tree(store: Store) -> dict[str, bytes]:
    return {entry.key: bytes(store.read(entry.key)) for entry in store.list()}


def new_store() -> CountingStore:
    return CountingStore(open_store(f"memory://{uuid4().hex}/d.zarr"))


def test_the_first_manifest_wins(tmp_path: Path) -> None:
    store = new_store()
    layout = ArrayLayout.create(3)
    write_dataset(store, EXAMPLE, [], layout)
    before = tree(store.store)
    with pytest.raises(AlreadyThere):
        write_dataset(store, EXAMPLE, [], layout)
    assert tree(store.store) == before
    for _ in range(2):  # for a folder, the caller does this
        write_dataset(tmp_path / "d", EXAMPLE, [], layout)


def test_format_2_is_not_for_stores() -> None:
    with pytest.raises(ArgumentError):
        writer.create_split(new_store(), "train", 8, 3, 8, ArrayLayout.create(2))


def write_run(url: str, options: dict[str, str], layout: ArrayLayout, first: int, tokens: Any) -> Any:
    return writer.write_tokens(open_store(url, options), "train", layout, first, tokens)


def test_several_processes_write_one_split(moto: str, random_sequences: Any) -> None:
    """Each task runs twice, as if a worker was declared lost but continued to write."""
    from servers import BUCKET, s3_options

    options, url = s3_options(moto), f"s3://{BUCKET}/{uuid4().hex}/d.zarr"
    layout = ArrayLayout.create(3, 16, 64)
    encoded, starts, largest = flat_format.from_sequences(random_sequences(3, 100))
    store = open_store(url, options)
    records = writer.create_split(store, "train", len(encoded), 100, largest, layout)
    records += writer.create_split(store, "validation", 0, 0, 0, layout)
    records += writer.write_starts(store, "validation", layout, 0, np.zeros(1, np.uint64))
    records += writer.write_starts(store, "train", layout, 0, starts)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        runs = [
            pool.submit(write_run, url, options, layout, first, encoded[first : first + 64])
            for first in [*range(0, len(encoded), 64)] * 2
        ]
        for run in runs:
            records += [record for record in run.result() if record not in records]
    counts = {
        "train": writer.SplitRecord(len(encoded), 100, largest),
        "validation": writer.SplitRecord(0, 0, 0),
    }
    writer.write_root(store, counts, records, layout)
    assert flat_tokens.verify_dataset(store).problems == ()
