"""Digests of files: XXH64 by the core and by Python against xxhash, and what the manifest's find."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

import flat_tokens
from flat_tokens import writer
from flat_tokens.built import core
from flat_tokens.storage import files
from flat_tokens.storage.file_digest import PythonXxh64, file_digest, has_digest
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import FileRecord, read_manifest
from flat_tokens.storage.manifest_lines import SELF_HASH_ZEROS
from flat_tokens.verify_units import verify_files

# The values of the specification's own check, of which xxhash is the implementation.
needs_core = pytest.mark.skipif(core is None, reason="the loops are not built")

VALUES = [(b"", 0xEF46DB3751D8E999), (b"a", 0xD24EC4F1A98C6E5B), (b"abc", 0x44BC2CF5AD770999)]
HASHES = [
    pytest.param(PythonXxh64, id="python"),
    pytest.param(core and core.Xxh64, id="core", marks=needs_core),
]


@pytest.mark.parametrize("make", HASHES)
def test_values_of_the_specification(make: Any) -> None:
    for data, expected in VALUES:
        hash_ = make()
        hash_.update(data)
        assert hash_.digest() == expected
        assert file_digest([data]) == f"{expected:016x}"
        assert has_digest(iter([data, b""]), f"{expected:016x}")
        assert not has_digest([data], f"{expected ^ 1:016x}")


@pytest.mark.parametrize("make", HASHES)
def test_every_length_around_a_stripe_in_parts(make: Any) -> None:
    data = np.random.default_rng(5).bytes(200)
    for size in range(len(data)):
        expected = xxhash.xxh64_intdigest(data[:size])
        for cut in {min(cut, size) for cut in (0, 1, 31, 32, size // 3, size)}:
            hash_ = make()
            hash_.update(data[:cut])
            assert hash_.digest() == xxhash.xxh64_intdigest(data[:cut])
            hash_.update(memoryview(data)[cut:size])
            assert hash_.digest() == hash_.digest() == expected, (size, cut)


def test_the_digest_of_older_manifests() -> None:
    expected = hashlib.sha256(b"123456789").hexdigest()
    assert has_digest([b"1234", b"56789"], expected)
    assert not has_digest([b"123456788"], expected)


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, list[FileRecord]]:
    layout = ArrayLayout.create(2, 16)
    values = np.arange(100, dtype=np.uint32)
    writer.create_arrays(tmp_path, "train", layout)
    return tmp_path, writer.write_tokens(tmp_path, "train", layout, 0, values)


@pytest.mark.parametrize("at_once", [files.READ_BYTES, 1, 7])
def test_files_as_they_were_written(
    written: tuple[Path, list[FileRecord]], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "READ_BYTES", at_once)
    root, records = written
    result = verify_files(root, tuple(records))
    assert result.problems == {}
    assert result.byte_count == sum(record.bytes for record in records)


def sha256_of(root: Path, record: FileRecord) -> FileRecord:
    return record._replace(digest=hashlib.sha256((root / record.path).read_bytes()).hexdigest())


@pytest.mark.parametrize("kind", ["xxh64", "sha256"])
def test_every_change_is_found(written: tuple[Path, list[FileRecord]], kind: str) -> None:
    root, records = written
    if kind == "sha256":
        records = [sha256_of(root, record) for record in records]
    changes: list[Callable[[Path, bytes], Any]] = [
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


def test_a_manifest_of_format_version_1(make_dataset: Any) -> None:
    """What this program writes, listed as the former one did it, is read and verified, and damage is found."""
    root = make_dataset()
    manifest = read_manifest(root)
    assert manifest is not None
    path = root / "manifest.json"
    value = json.loads(path.read_text())
    assert {len(record.digest) for record in manifest.files} == {16}
    value["format_version"] = 1
    value["files"] = [
        {"path": record.path, "bytes": record.bytes, "sha256": sha256_of(root, record).digest}
        for record in manifest.files
    ]
    value["manifest_sha256"] = SELF_HASH_ZEROS
    value["manifest_sha256"] = hashlib.sha256(json.dumps(value).encode()).hexdigest()
    path.write_text(json.dumps(value))
    assert flat_tokens.open(root).train.sequence(1).tolist() == [3, 4, 5]
    assert flat_tokens.verify_dataset(root).ok
    (root / "tokenizer.json").write_bytes(bytes(len((root / "tokenizer.json").read_bytes())))
    (problem,) = flat_tokens.verify_dataset(root).problems
    assert problem.startswith("tokenizer.json: ")
