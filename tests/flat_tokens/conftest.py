"""Small datasets for the tests of flat_tokens."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from flat_tokens import format as flat_format
from flat_tokens import writer
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "stores"),
]  # modules that tests share

Sequences = Sequence[Sequence[int]]
MakeDataset = Callable[..., Path]

EXAMPLE = [[1, 2], [3, 4, 5], [6, 7, 8]]
TOKENIZER = {
    "version": "1.0",
    "model": {
        "type": "BPE",
        "vocab": {chr(ord("a") + i): i for i in range(26)} | {"Ġ": 26, "Ċ": 27},
        "merges": [],
    },
    "added_tokens": [{"id": 28, "content": "<|end|>", "special": True}],
}


def write_dataset(root: Path, train: Sequences, validation: Sequences, layout: ArrayLayout) -> Path:
    """Write a whole dataset from sequences in memory, as a converter would."""
    data = json.dumps(TOKENIZER).encode()
    root.mkdir(parents=True, exist_ok=True)
    records = [writer.write_file(root, "tokenizer.json", data)]
    digest = hashlib.sha256(data).hexdigest()
    tokenizer = {"path": "tokenizer.json", "sha256": digest, "fingerprint": "f" * 64}
    splits = {}
    for name, sequences in (("train", train), ("validation", validation)):
        encoded, starts, max_token_id = flat_format.from_sequences(sequences)
        splits[name] = SplitRecord(len(encoded), len(sequences), max_token_id)
        records += writer.create_split(root, name, len(encoded), len(sequences), max_token_id, layout)
        records += writer.write_tokens(root, name, layout, 0, encoded)
        records += writer.write_starts(root, name, layout, 0, starts)
    writer.write_root(
        root,
        splits,
        records,
        layout,
        tokenizer=tokenizer,
        sources=[{"path": "a.txt", "bytes": 3}],
        options={"seed": 0},
        versions={"flat_tokens": "test"},
    )
    return root


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """The address of moto's S3 server."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    from servers import moto_server

    with moto_server() as address:
        yield address


@pytest.fixture
def make_dataset(tmp_path: Path) -> MakeDataset:
    """make_dataset(train=EXAMPLE, validation=[], layout=ArrayLayout()) -> the path of a finished dataset."""

    def make(
        train: Sequences = EXAMPLE,
        validation: Sequences = (),
        layout: ArrayLayout | None = None,
        name: str = "d",
    ) -> Path:
        return write_dataset(tmp_path / name, train, validation, layout or ArrayLayout())

    return make


@pytest.fixture
def random_sequences() -> Callable[..., list[list[int]]]:
    """random_sequences(seed, count, longest, largest_id) -> sequences of 1 to `longest` ids."""

    def make(seed: int, count: int, longest: int = 9, largest_id: int = 27) -> list[list[int]]:
        rng = random.Random(seed)
        return [[rng.randint(0, largest_id) for _ in range(rng.randint(1, longest))] for _ in range(count)]

    return make
