"""The manifest and its two lists: every change is one error, and memory does not depend on their claims."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flat_tokens
from flat_tokens import DatasetError
from flat_tokens.storage.file_digest import file_digest
from flat_tokens.storage.layout import ArrayLayout
from tests.flat_tokens.small_datasets import EXAMPLE, write_dataset

NAMES = ["manifest.json", "files.jsonl", "sources.jsonl"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sources = [{"path": f"{number}.txt", "train_sequences": number % 2} for number in range(6)]
    write_dataset(tmp_path / "d", EXAMPLE, [], ArrayLayout(), sources=sources)
    return tmp_path / "d"


def read_all(root: Path) -> None:
    dataset = flat_tokens.open(root)
    assert len(dataset.sources()) == 6
    flat_tokens.verify_dataset(root).require_ok()


@pytest.mark.slow
@pytest.mark.promise("damage")
@pytest.mark.parametrize("name", NAMES)
def test_every_flip_and_truncation_is_found(root: Path, name: str) -> None:
    data = (root / name).read_bytes()
    read_all(root)
    for at in range(len(data)):
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
            if at % 5 and len(changed) == at:
                continue  # truncations are slow
            (root / name).write_bytes(changed)
            with pytest.raises(DatasetError, match=name):
                read_all(root)


def edit(root: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest, with its lists as values, and update all digests, as a hostile writer would."""
    manifest = json.loads((root / "manifest.json").read_text())
    value = dict(manifest)
    for name in ("files", "sources"):
        value[name] = [json.loads(line) for line in (root / f"{name}.jsonl").read_text().splitlines()]
    change(value)
    for name in ("files", "sources"):
        if isinstance(value.get(name), list):
            data = "".join(json.dumps(item) + "\n" for item in value[name]).encode()
            (root / f"{name}.jsonl").write_bytes(data)
            value[name] = {"lines": len(value[name]), "bytes": len(data), "xxh64": file_digest((data,))}
    text = json.dumps(value | {"manifest_sha256": "0" * 64})
    (root / "manifest.json").write_text(text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest()))


HOSTILE: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "parent": (lambda m: m["files"][0].update(path="../outside.json"), "paths "),
    "absolute": (lambda m: m["files"][0].update(path="/etc/passwd"), "paths "),
    "NUL": (lambda m: m["files"][0].update(path="a\0b"), "paths "),
    "empty path": (lambda m: m["files"][0].update(path=""), "paths "),
    "path is a number": (lambda m: m["files"][0].update(path=5), "path "),
    "itself": (lambda m: m["files"][0].update(path="manifest.json"), "itself"),
    "twice": (lambda m: m["files"].append(m["files"][0]), "once each"),
    "its list": (lambda m: m["files"][0].update(path="files.jsonl"), "once each"),
    "digest": (lambda m: m["files"][0].update(xxh64="x" * 16), "xxh64 "),
    "long digest": (lambda m: m["files"][0].update(xxh64="0" * 64), "xxh64 "),
    "no digest": (lambda m: m["files"][0].pop("xxh64"), "'xxh64'"),
    "bytes": (lambda m: m["files"][0].update(bytes=-1), "bytes "),
    "bytes as bool": (lambda m: m["files"][0].update(bytes=True), "bytes "),
    "file": (lambda m: m["files"].__setitem__(0, 5), "object per line"),
    "lists": (lambda m: m["files"].__setitem__(0, [[]]), "object per line"),
    "version": (lambda m: m.update(format_version=2), "format_version "),
    "version is a list": (lambda m: m.update(format_version=[1]), "format_version "),
    "format": (lambda m: m.update(format="other"), "format "),
    "files": (lambda m: m.update(files={}), "'lines'"),
    "no split": (lambda m: m["splits"].pop("train"), "'train'"),
    "tokens": (lambda m: m["splits"]["train"].update(token_count=2**63), r"train\.token_count "),
    "counts": (lambda m: m["splits"]["train"].update(seq_count=2), "seq_count "),
    "tokenizer": (lambda m: m["tokenizer"].update(path="/etc/passwd"), "tokenizer"),
    "tokenizer path": (lambda m: m["tokenizer"].update(path={}), r"tokenizer\.path "),
    "terminal": (lambda m: m["files"][0].update(path="\x1b[2J/.."), r"\\x1b\[2J"),
    "options": (lambda m: m.update(options=[]), "options "),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_invalid_values_are_named(root: Path, case: str) -> None:
    change, where = HOSTILE[case]
    edit(root, lambda value: None)
    read_all(root)
    edit(root, change)
    with pytest.raises(DatasetError, match=where) as caught:
        read_all(root)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_stated", [False, True])
def test_holes_are_not_held_in_memory(root: Path, name: str, is_stated: bool) -> None:
    """A sparse file of 64 MB, listed with this size or not."""
    with (root / name).open("r+b") as file:
        file.truncate(2**26)
    if is_stated and name != "manifest.json":
        facts = {"lines": 1, "bytes": 2**26, "xxh64": "0" * 16}
        value = json.loads((root / "manifest.json").read_text()) | {name.partition(".")[0]: facts}
        text = json.dumps(value | {"manifest_sha256": "0" * 64})
        (root / "manifest.json").write_text(text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest()))
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError, match=name):
            read_all(root)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_unused_sources_take_no_memory(tmp_path: Path) -> None:
    sources = ({"path": f"{number}.txt", "train_sequences": 0} for number in range(50_000))
    write_dataset(tmp_path / "d", [], [], ArrayLayout(), sources=sources)  # type: ignore[arg-type]
    flat_tokens.open(tmp_path / "d").sources(1)
    tracemalloc.start()
    try:
        dataset = flat_tokens.open(tmp_path / "d")
        assert [source["path"] for source in dataset.sources(2)] == ["0.txt", "1.txt"]
        assert dataset.manifest is not None
        assert dataset.manifest.sources.lines == 50_000
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
