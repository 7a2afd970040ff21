"""Drawn datasets for the contract tests: layouts, sequences, loss masks, and the arrays of the format."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from hypothesis import strategies as st

import flat_tokens
from flat_tokens import ArrayLayout
from tokenmill.stores import Store, open_store

SPLITS = ("train", "validation")
COMPRESSIONS = ("zstd", "lz4", "lz4-bitshuffle", "none")
Sequences = list[list[int]]


@st.composite
def layouts(draw: st.DrawFn, formats: tuple[int, ...] = (2, 3)) -> ArrayLayout:
    """Draw layouts with Zarr chunks so small that few tokens fill several files."""
    zarr_format = draw(st.sampled_from(formats))
    chunk = 8 * draw(st.integers(1, 4))
    shard = chunk * draw(st.integers(1, 3)) if zarr_format == 3 else None
    return ArrayLayout.create(zarr_format, chunk, shard, draw(st.sampled_from(COMPRESSIONS)))


def sequences(largest: int = 2**31 - 1, least: int = 1) -> st.SearchStrategy[Sequences]:
    """Draw up to 30 sequences, some of them longer than a Zarr chunk."""
    ids = st.one_of(st.integers(0, min(largest, 300)), st.integers(0, largest))
    one = st.one_of(st.lists(ids, min_size=least, max_size=5), st.lists(ids, min_size=least, max_size=70))
    return st.lists(one, max_size=30)


@dataclass
class Drawn:
    """The content of a dataset. masks: None without a loss mask."""

    layout: ArrayLayout
    splits: dict[str, Sequences]
    masks: dict[str, list[list[bool]]] | None

    def write(self, root: Any, tokenizer: Any = None) -> None:
        """Write the dataset with `Writer`, one sequence per call."""
        has_mask = self.masks is not None
        with flat_tokens.Writer(root, tokenizer, layout=self.layout, has_mask=has_mask) as writer:
            for split, rows in self.splits.items():
                for index, ids in enumerate(rows):
                    writer.add(split, ids, None if self.masks is None else self.masks[split][index])


@st.composite
def datasets(draw: st.DrawFn, formats: tuple[int, ...] = (2, 3), least: int = 1) -> Drawn:
    """Draw any dataset. least: minimum number of tokens per sequence."""
    splits = {split: draw(sequences(least=least)) for split in SPLITS}
    masks = None
    if draw(st.booleans()):
        seed = draw(st.integers(0, 99))
        bits = np.random.default_rng(seed)
        masks = {
            split: [(bits.random(len(ids)) < 0.5).tolist() for ids in rows] for split, rows in splits.items()
        }
    return Drawn(draw(layouts(formats)), splits, masks)


def arrays_of(rows: Sequences) -> dict[str, Any]:
    """Return the arrays of a split by the definition of the format."""
    starts = np.cumsum([0, *map(len, rows)])
    tokens = [2 * id_ + (at == 0) for ids in rows for at, id_ in enumerate(ids)]
    largest = max((id_ for ids in rows for id_ in ids), default=0)
    return {"encoded_tokens": tokens, "seq_starts": starts.tolist(), "max_token_id": largest}


def new_store() -> Store:
    """Return an empty store in memory."""
    return open_store(f"memory://{uuid4().hex}/d.zarr")


def files_of(root: Path) -> list[Path]:
    """Return all files below a folder."""
    return sorted(path for path in root.rglob("*") if path.is_file())


def content(root: Any) -> dict[str, Sequences]:
    """Return the sequences of a dataset."""
    dataset = flat_tokens.open(root)
    return {split: [ids.tolist() for ids in dataset[split]] for split in SPLITS}


def bits_of(rows: list[list[bool]]) -> list[bool]:
    """Concatenate the masks of all sequences."""
    return [bit for row in rows for bit in row]


def cut(ids: list[int], lengths: list[int]) -> list[list[int]]:
    """Cut the IDs into pieces of these lengths, and the rest."""
    bounds = np.minimum(np.cumsum([0, *lengths]), len(ids)).tolist()
    return [ids[start:stop] for start, stop in pairwise([*bounds, len(ids)])]
