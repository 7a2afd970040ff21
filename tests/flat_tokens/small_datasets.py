"""Write datasets from sequences in memory, like a converter."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from flat_tokens import writer
from flat_tokens.storage.layout import ArrayLayout
from flat_tokens.storage.manifest import SplitRecord

Sequences = Sequence[Sequence[int]]

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


def from_sequences(sequences: Sequence[Sequence[int]]) -> tuple[Any, Any, int]:
    """Return (encoded_tokens, seq_starts, max_token_id): [[1, 2], [3]] -> [3, 4, 7], [0, 2, 3], 3."""
    starts = np.cumsum([0, *map(len, sequences)]).astype("<u8")
    encoded = np.array([id_ for sequence in sequences for id_ in sequence], dtype="<u4") << np.uint32(1)
    encoded[starts[:-1]] |= 1
    return encoded, starts, int(encoded.max(initial=0)) >> 1


def numbered(lengths: Iterable[int], first: int = 0) -> list[list[int]]:
    """Return sequences with consecutive IDs, so that an ID is a position: [2, 1] -> [[0, 1], [2]]."""
    return [list(range(a, b)) for a, b in pairwise(accumulate(lengths, initial=first))]


def write_dataset(
    root: writer.Destination,
    train: Sequences,
    validation: Sequences,
    layout: ArrayLayout,
    trained: Mapping[str, Sequence[bool]] | None = None,
    sources: Sequence[Mapping[str, object]] = ({"path": "a.txt", "bytes": 3},),
) -> None:
    """Write a dataset to a folder or a store. trained: the loss mask of each split. sources: for the manifest."""
    data = json.dumps(TOKENIZER).encode()
    if isinstance(root, Path):
        root.mkdir(parents=True, exist_ok=True)
    records = [writer.write_file(root, "tokenizer.json", data)]
    digest = hashlib.sha256(data).hexdigest()
    tokenizer = {"path": "tokenizer.json", "sha256": digest, "fingerprint": "f" * 64}
    splits = {}
    for name, sequences in (("train", train), ("validation", validation)):
        encoded, starts, max_token_id = from_sequences(sequences)
        bits = None if trained is None else np.array(trained[name], dtype=np.bool_)
        count = None if bits is None else int(bits.sum())
        splits[name] = SplitRecord(len(encoded), len(sequences), max_token_id, count)
        records += writer.create_split(
            root, name, len(encoded), len(sequences), max_token_id, layout, has_mask=bits is not None
        )
        if bits is not None:
            records += writer.write_run(root, name, layout, "loss_mask", 0, bits)
        records += writer.write_run(root, name, layout, "encoded_tokens", 0, encoded)
        records += writer.write_run(root, name, layout, "seq_starts", 0, starts)
    writer.write_root(
        root,
        splits,
        records,
        layout,
        tokenizer=tokenizer,
        sources=[dict(source) for source in sources],
        options={"seed": 0},
        versions={"flat_tokens": "test"},
    )
