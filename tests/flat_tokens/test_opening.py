"""Opening rejects unfinished, foreign and damaged datasets, and other tokenizers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edit_json import edit_json

import flat_tokens
from flat_tokens.errors import DatasetError
from flat_tokens.storage.codecs import CodecChain
from flat_tokens.storage.entries import load_entries
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import read_manifest


def test_tokenizer_must_be_the_datasets(make_dataset: Any, tmp_path: Path) -> None:
    root = make_dataset()
    dataset = flat_tokens.open(root, tokenizer=root / "tokenizer.json")
    assert dataset.tokenizer_path == root / "tokenizer.json"

    class Tokenizer:
        def __init__(self, name: str) -> None:
            self.name = name

        def fingerprint(self) -> str:
            return self.name * 64

    assert flat_tokens.open(root, tokenizer=Tokenizer("f")).train.seq_count == 3
    with pytest.raises(DatasetError):
        flat_tokens.open(root, tokenizer=Tokenizer("0"))
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DatasetError):
        flat_tokens.open(root, tokenizer=tmp_path / "other.json")


def test_the_tokenizer_that_was_converted_with_is_the_datasets(make_dataset: Any, tmp_path: Path) -> None:
    """The dataset stores its own tokenizer.json, so the original Hugging Face files were rejected."""
    root, given = make_dataset(), tmp_path / "given"
    given.mkdir()
    (given / "vocab.json").write_bytes(b"{}")
    (given / "merges.txt").write_bytes(b"a b")
    manifest = read_manifest(root)
    tokenizer = {**(manifest.tokenizer or {}), "source_sha256": hashlib.sha256(b"{}a b").hexdigest()}
    (root / "manifest.json").write_bytes(replace(manifest, tokenizer=tokenizer).to_bytes())
    assert flat_tokens.open(root, tokenizer=given).train.seq_count == 3
    assert flat_tokens.open(root, tokenizer=root).train.seq_count == 3  # a folder with a tokenizer.json
    (given / "merges.txt").write_bytes(b"a c")
    with pytest.raises(DatasetError):
        flat_tokens.open(root, tokenizer=given)


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "nothing there": (shutil.rmtree, "d: "),
    "a file": (lambda root: (shutil.rmtree(root), root.write_text("")), "d: "),
    "foreign": (lambda root: (shutil.rmtree(root), root.mkdir()), "d: "),
    "no root group": (lambda root: (root / ".zgroup").unlink(), "d: "),
    "no train": (lambda root: shutil.rmtree(root / "train"), "d: "),
    "no validation": (lambda root: shutil.rmtree(root / "validation"), "validation: "),
    "no array": (lambda root: shutil.rmtree(root / "train/seq_starts"), "train/seq_starts: "),
    "no attribute": (lambda root: (root / "train/.zattrs").unlink(), "train: .*max_token_id"),
    "attribute": (
        lambda root: edit_json(root / "train/.zattrs", max_token_id=2**31),
        "train: .*max_token_id",
    ),
    "lost starts": (lambda root: (root / "train/seq_starts/0").unlink(), "train/seq_starts/0: "),
    "short": (lambda root: edit_json(root / "train/encoded_tokens/.zarray", shape=[7]), "train/seq_starts: "),
    "counts": (lambda root: edit_json(root / "train/.zattrs", max_token_id=9), "train: max_token_id"),
    "deep": (lambda root: (root / "train/.zattrs").write_text("[" * 10**5), r"train/\.zattrs: "),
    "list": (lambda root: (root / "train/.zattrs").write_text("[]"), r"train/\.zattrs: "),
    "pickle": (
        lambda root: edit_json(root / "train/seq_starts/.zarray", filters=[{"id": "pickle"}]),
        "train/seq_starts/.zarray: codec .*pickle",
    ),
    "type": (lambda root: edit_json(root / "train/seq_starts/.zarray", dtype="<i8"), "train/seq_starts: "),
    "objects": (lambda root: edit_json(root / "train/seq_starts/.zarray", dtype="|O"), "seq_starts"),
    "chunks": (lambda root: edit_json(root / "train/seq_starts/.zarray", chunks=[-1]), "seq_starts"),
    "huge chunks": (
        lambda root: edit_json(root / "train/seq_starts/.zarray", chunks=[2**40]),
        "train/seq_starts",
    ),
    "huge shape": (
        lambda root: edit_json(root / "train/seq_starts/.zarray", shape=[2**62], chunks=[1]),
        r"train/seq_starts/\.zarray: ",
    ),
    "more files than a file system has": (
        lambda root: edit_json(root / "train/encoded_tokens/.zarray", shape=[2**40], chunks=[1]),
        r"train/encoded_tokens/\.zarray: ",
    ),
    "long metadata": (
        lambda root: os.truncate(root / "train/encoded_tokens/.zarray", 2**40),
        r"train/encoded_tokens/\.zarray: ",
    ),
    "sparse tail": (
        lambda root: os.truncate(root / "manifest.json", 2**31),
        r"manifest\.json: ",
    ),
    "sparse chunk": (
        lambda root: os.truncate(root / "train/seq_starts/0", 2**31),
        "train/seq_starts/0: ",
    ),
    "a pipe for metadata": (
        lambda root: ((root / "train/.zattrs").unlink(), os.mkfifo(root / "train/.zattrs")),
        r"train/\.zattrs: ",
    ),
    "shape over 64 bits": (
        lambda root: edit_json(root / "train/seq_starts/.zarray", shape=[2**63]),
        "train/seq_starts/.zarray: ",
    ),
}


@pytest.mark.promise("limits")
@pytest.mark.parametrize("case", REFUSED)
def test_refused_on_opening(make_dataset: Any, case: str) -> None:
    root = make_dataset()
    damage, where = REFUSED[case]
    damage(root)
    with pytest.raises(DatasetError, match=where) as caught:
        flat_tokens.open(root)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("chunk_count", [2**31, 2**32])
@pytest.mark.parametrize("compressor", [None, {"id": "zstd", "level": 1}], ids=["raw", "zstd"])
def test_cost_of_opening_does_not_depend_on_the_claimed_count(
    make_dataset: Any, chunk_count: int, compressor: Any
) -> None:
    """2.5 * 10^9 Zarr chunks of one element took 2.4 GB, and 2^40 gave a MemoryError."""
    root = make_dataset(layout=ArrayLayout.create(2, 4, compression="none" if compressor is None else "zstd"))
    (root / "manifest.json").unlink()
    edit_json(root / "train/encoded_tokens/.zarray", shape=[chunk_count], chunks=[1])
    edit_json(root / "train/seq_starts/.zarray", shape=[chunk_count], chunks=[1])
    (root / "train/seq_starts").joinpath(str(chunk_count - 1)).write_bytes(_chunk_of(chunk_count, compressor))
    (root / "train/seq_starts/0").write_bytes(_chunk_of(0, compressor))
    tracemalloc.start()
    try:
        dataset = flat_tokens.open(root)
        assert dataset.train.token_count == chunk_count
        problems = flat_tokens.verify_dataset(root).problems
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    (problem,) = problems
    assert re.match(rf"train/seq_starts: .*{chunk_count}.*\b5\b", problem)


def _chunk_of(value: int, compressor: Any) -> bytes:
    chain = CodecChain.of([], compressor)
    return chain.encode(np.array([value], dtype="<u8"))


def test_json_of_nested_lists_only_is_refused(tmp_path: Path) -> None:
    """Parsing it takes 25 times its size."""
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b"[" + b"[]," * (2**22) + b"[]]")
    with pytest.raises(DatasetError, match=r"tokenizer\.json"):
        load_entries(path)


def test_a_single_array_is_not_a_dataset(make_dataset: Any) -> None:
    with pytest.raises(DatasetError):
        flat_tokens.open(make_dataset() / "train")


def test_a_model_sized_by_train_failed_on_validation(make_dataset: Any, tmp_path: Path) -> None:
    """Guides sized embeddings by train.max_token_id + 1, but validation may have a higher ID."""
    assert flat_tokens.open(make_dataset([[1, 2]], [[40]], name="validation")).vocab_size == 41
    path = make_dataset([[1, 2]], [[3]], name="tokenizer")
    assert flat_tokens.open(path).vocab_size == 29  # the added token <|end|> has ID 28
    entries = {"model": {"type": "Unigram", "vocab": [["a", 0.0], ["b", 0.0], ["c", 0.0]]}}
    for name, value, size in (("list", entries, 4), ("empty", {"model": {"vocab": {}}}, 4)):
        other = make_dataset([[1, 2]], [[3]], name=name)
        (other / "tokenizer.json").write_text(json.dumps(value))
        assert flat_tokens.open(other).vocab_size == size
    (path / "tokenizer.json").write_text('{"model": {}}')
    with pytest.raises(DatasetError, match=r"tokenizer\.json.*tokenizer\.json"):
        flat_tokens.open(path).vocab_size  # noqa: B018
    (path / "tokenizer.json").unlink()
    (path / "manifest.json").unlink()
    assert flat_tokens.open(path).vocab_size == 4  # without a tokenizer, the splits decide
