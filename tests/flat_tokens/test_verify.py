"""Hostile manifests, and every byte of a manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flat_tokens
from flat_tokens.errors import DatasetError
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import read_manifest
from flat_tokens.storage.manifest_lines import SELF_HASH_ZEROS


def found(root: Path) -> str:
    """What verify reports."""
    try:
        return "\n".join(flat_tokens.verify_dataset(root).problems)
    except DatasetError as error:
        return str(error)


def test_every_byte_of_the_metadata_counts(make_dataset: Any) -> None:
    root = make_dataset(layout=ArrayLayout.create(2, 4))
    for name in ("train/.zattrs", ".zgroup", "train/seq_starts/.zarray"):
        data = (root / name).read_bytes()
        for at in range(len(data)):
            (root / name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            assert name in found(root), f"{name}: byte {at}"
        (root / name).write_bytes(data)
    manifest = (root / "manifest.json").read_bytes()
    for at in range(len(manifest)):
        (root / "manifest.json").write_bytes(manifest[:at] + bytes([manifest[at] ^ 1]) + manifest[at + 1 :])
        with pytest.raises(DatasetError, match=r"manifest\.json: "):
            read_manifest(root)


def rewritten_manifest(root: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the manifest and make its own hash fit again, as a hostile writer would."""
    value = json.loads((root / "manifest.json").read_text())
    change(value)
    value["manifest_sha256"] = SELF_HASH_ZEROS
    text = json.dumps(value)
    value["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (root / "manifest.json").write_text(json.dumps(value))


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "parent": (lambda m: m["files"][0].update(path="../outside.json"), "paths "),
    "absolute": (lambda m: m["files"][0].update(path="/etc/passwd"), "paths "),
    "NUL": (lambda m: m["files"][0].update(path="a\0b"), "paths "),
    "empty path": (lambda m: m["files"][0].update(path=""), "paths "),
    "path is a number": (lambda m: m["files"][0].update(path=5), "files.path "),
    "itself": (lambda m: m["files"][0].update(path="manifest.json"), "manifest.json: "),
    "twice": (lambda m: m["files"].append(m["files"][0]), "files "),
    "digest": (lambda m: m["files"][0].update(xxh64="x" * 16), "xxh64 "),
    "long digest": (lambda m: m["files"][0].update(xxh64="0" * 64), "xxh64 "),
    "no digest": (lambda m: m["files"][0].pop("xxh64"), "'xxh64'"),
    "version": (lambda m: m.update(format_version=1), "'sha256'"),
    "version is a list": (lambda m: m.update(format_version=[1]), "format_version "),
    "bytes": (lambda m: m["files"][0].update(bytes=-1), "bytes "),
    "bytes as bool": (lambda m: m["files"][0].update(bytes=True), "bytes "),
    "no bytes": (lambda m: m["files"][0].pop("bytes"), "'bytes'"),
    "files": (lambda m: m.update(files={}), "files "),
    "file": (lambda m: m["files"].__setitem__(0, 5), "manifest.json: "),
    "split": (lambda m: m["splits"].update(test={}), "splits "),
    "no split": (lambda m: m["splits"].pop("train"), "split train "),
    "tokens": (
        lambda m: m["splits"]["train"].update(token_count=2**63),
        "train.token_count ",
    ),
    "tokenizer": (lambda m: m["tokenizer"].update(path="/etc/passwd"), "tokenizer.path "),
    "no tokenizer": (lambda m: m.pop("tokenizer") and m["files"].clear(), "tokenizer.json: "),
    "terminal": (lambda m: m["files"][0].update(path="\x1b[2J/.."), r"\x1b[2J"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_manifests(make_dataset: Any, case: str) -> None:
    root = make_dataset()
    change, where = HOSTILE[case]
    rewritten_manifest(root, change)
    problems = found(root)
    assert where in problems
    assert problems.isprintable() or case == "no tokenizer"


def test_every_truncation_of_the_manifest(make_dataset: Any) -> None:
    root = make_dataset()
    manifest = root / "manifest.json"
    data = manifest.read_bytes()
    lengths = [*range(0, len(data) - 1, 7), len(data) - 2]
    for length in lengths:
        manifest.write_bytes(data[:length])
        with pytest.raises(DatasetError, match=r"manifest\.json: "):
            read_manifest(root)
