"""The hash by which files are read back: XXH64 as its specification has it, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flat_tokens import format as flat_format
from flat_tokens import verify_units, writer
from flat_tokens.storage import quick_hash as module
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, Manifest, SplitRecord, read_manifest
from flat_tokens.storage.quick_hash import quick_hash
from flat_tokens.storage.zstd_library import library
from flat_tokens.verify_units import verify_files

zstd = library()
is_there = zstd is not None and zstd.xxh64 is not None
needs_hash = pytest.mark.skipif(not is_there, reason="numcodecs does not export XXH64 here")


@needs_hash
@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)],
)
def test_values_of_the_specification(data: bytes, expected: int) -> None:
    for view in (data, bytearray(data), memoryview(data)):
        assert quick_hash(view) == expected


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, list[FileRecord]]:
    layout = ArrayLayout.create(2, 16)
    values = np.arange(100, dtype=np.uint32)
    writer.create_arrays(tmp_path, "train", layout)
    return tmp_path, writer.write_tokens(tmp_path, "train", layout, 0, values)


@pytest.mark.parametrize("most", [2**26, 20], ids=["quick", "sha256"])
def test_what_is_written_is_read_back(
    written: tuple[Path, list[FileRecord]], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_units, "MOST_AT_ONCE", most)
    root, records = written
    assert all((record.quick_hash is not None) == is_there for record in records)
    result = verify_files(root, tuple(records))
    assert result.problems == {}
    assert result.byte_count == sum(record.bytes for record in records)


@pytest.mark.parametrize("is_quick", [pytest.param(True, marks=needs_hash), False], ids=["quick", "sha256"])
def test_every_change_is_found(written: tuple[Path, list[FileRecord]], is_quick: bool) -> None:
    root, records = written
    if not is_quick:
        records = [record._replace(quick_hash=None) for record in records]
    changes: list[Any] = [
        lambda path, data: path.write_bytes(data[:-1] + bytes([data[-1] ^ 1])),
        lambda path, data: path.write_bytes(data[:-1]),
        lambda path, data: path.write_bytes(data + b"\0"),
        lambda path, data: path.write_bytes(b""),
        lambda path, data: path.unlink(),
        lambda path, data: (path.unlink(), path.mkdir()),
    ]
    for record, change in zip(records, changes, strict=False):
        path = root / record.path
        change(path, path.read_bytes())
    result = verify_files(root, tuple(records))
    assert sorted(result.problems) == sorted(record.path for record in records[: len(changes)])
    assert all("\n" not in problem for problem in result.problems.values())


def test_without_the_library(written: tuple[Path, list[FileRecord]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "library", lambda: None)
    root, _ = written
    record = writer.write_file(root, "a", b"abc")
    assert record.quick_hash is quick_hash(b"abc") is None
    assert verify_files(root, (record,)).problems == {}
    (root / "a").write_bytes(b"abd")
    assert list(verify_files(root, (record,)).problems) == ["a"]


def test_the_manifest_keeps_none(tmp_path: Path) -> None:
    layout = ArrayLayout.create(2, 16)
    encoded, starts, max_token_id = flat_format.from_sequences([[1, 2], [3]])
    records = []
    for split in ("train", "validation"):
        records += writer.create_split(tmp_path, split, len(encoded), 2, max_token_id, layout)
        records += writer.write_tokens(tmp_path, split, layout, 0, encoded)
        records += writer.write_starts(tmp_path, split, layout, 0, starts)
    splits = {split: SplitRecord(len(encoded), 2, max_token_id) for split in ("train", "validation")}
    made: Manifest = writer.write_root(tmp_path, splits, records, layout)
    assert read_manifest(tmp_path) == made
    assert b"quick_hash" not in (tmp_path / "manifest.json").read_bytes()
