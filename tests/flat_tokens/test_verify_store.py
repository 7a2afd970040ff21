"""Verification on a store finds the same damage as on a disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from counting_store import CountingStore, copy_dataset
from edit_json import edit_json

import flat_tokens
from flat_tokens.errors import DatasetError
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import read_manifest
from tokenmill.stores import open_store

pytest.importorskip("obstore", reason="obstore is not installed")

LAYOUTS = [
    pytest.param(ArrayLayout.create(3, 8, 32), id="zstd"),
    pytest.param(ArrayLayout.create(3, 8, 32, "none"), id="none"),
]


@pytest.fixture(params=LAYOUTS)
def sound(request: pytest.FixtureRequest, make_dataset: Any, random_sequences: Any) -> Path:
    root: Path = make_dataset(random_sequences(1, 60), random_sequences(2, 5), request.param)
    return root


def on_store(root: Path) -> CountingStore:
    return CountingStore(copy_dataset(root, open_store(f"memory://{uuid4().hex}/d.zarr")))


def found(root: Any) -> str:
    """Return the findings of verify without the location, or ""."""
    try:
        lines = "\n".join(flat_tokens.verify_dataset(root).problems)
    except DatasetError as error:
        lines = str(error)
    return lines.replace(root.url if isinstance(root, CountingStore) else str(root), "D")


def test_a_sound_dataset_takes_two_requests_an_object(sound: Path) -> None:
    store, objects = on_store(sound), sum(path.is_file() for path in sound.rglob("*"))
    report = flat_tokens.verify_dataset(store)
    expected = flat_tokens.verify_dataset(sound)
    assert report.problems == ()
    assert str(report.path) == store.url
    assert (report.file_count, report.byte_count, report.token_count, report.seq_count) == (
        expected.file_count,
        expected.byte_count,
        expected.token_count,
        expected.seq_count,
    )
    assert store.requests["list"] == 1
    # The size and the bytes of each object, the reads of opening, and the starts that token checks compare.
    assert store.requests.total() < 2 * objects + 90


LIES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "shape": (
        lambda root: edit_json(root / "train/encoded_tokens/zarr.json", shape=[9]),
        "train/encoded_tokens/zarr.json: ",
    ),
    "largest id": (
        lambda root: edit_json(root / "train/zarr.json", attributes={"max_token_id": 30}),
        "train/encoded_tokens: max_token_id ",
    ),
    "split lost": (lambda root: shutil.rmtree(root / "validation"), "validation/zarr.json: "),
}


@pytest.mark.parametrize("lie", LIES)
def test_contradictory_metadata(sound: Path, lie: str) -> None:
    harm, where = LIES[lie]
    harm(sound)
    its = found(on_store(sound))
    assert where in its
    assert its == found(sound)


def test_a_manifest_of_another_layout_than_the_arrays(sound: Path) -> None:
    """Readers on a store trust the manifest; on a disk they read the arrays' own metadata."""
    manifest = read_manifest(sound)
    assert manifest is not None
    object.__setattr__(manifest, "layout", {**manifest.layout, "chunk_tokens": 16})
    (sound / "manifest.json").write_bytes(manifest.to_bytes())
    assert not found(sound)
    assert "train/encoded_tokens: " in found(on_store(sound))


def test_a_dataset_changed_during_verification(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = on_store(sound)
    key = "train/encoded_tokens/c/0"

    class Changing(CountingStore):
        def head(self, key_: str) -> Any:
            entry = super().head(key_)
            if key_ == key:
                self.put(key, b"other")
            return entry

    problems = flat_tokens.verify_dataset(Changing(store.store)).problems
    assert len(problems) == 1
    assert f"{key}: " in problems[0]
