"""Drawn datasets for the contract tests: layouts, sequences, loss masks, sources, and the arrays of the format."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from hypothesis import strategies as st
from small_datasets import from_sequences

import flat_tokens
from flat_tokens import ArrayLayout
from tokenmill.stores import Store, open_store

SPLITS = ("train", "validation")
COMPRESSIONS = ("zstd", "lz4", "lz4-bitshuffle", "none")
Sequences = list[list[int]]
_numbers = itertools.count()


@dataclass
class Drawn:
    """The content of a dataset. masks: None without a loss mask. sources: (path, number of train sequences)."""

    layout: ArrayLayout
    splits: dict[str, Sequences]
    masks: dict[str, list[list[bool]]] | None = None
    sources: list[tuple[str, int]] = field(default_factory=list)
    is_on_store: bool = False

    @property
    def sequences(self) -> Sequences:
        return self.splits["train"]

    @property
    def trained(self) -> list[bool] | None:
        return None if self.masks is None else bits_of(self.masks["train"])

    @property
    def origins(self) -> list[tuple[str, int]]:
        """Return the source of each sequence of train and its index there."""
        return [(path, record) for path, count in self.sources for record in range(count)]

    @property
    def facts(self) -> list[dict[str, Any]]:
        """Return the sources for a manifest."""
        return [{"path": path, "train_sequences": count} for path, count in self.sources]

    def write(self, root: Any, tokenizer: Any = None) -> None:
        """Write the dataset with `Writer`, one sequence per call."""
        has_mask = self.masks is not None
        with flat_tokens.Writer(
            root, tokenizer, layout=self.layout, has_mask=has_mask, sources=self.facts
        ) as writer:
            for split, rows in self.splits.items():
                for index, ids in enumerate(rows):
                    writer.add(split, ids, None if self.masks is None else self.masks[split][index])

    def write_in(self, folder: Path) -> Any:
        """Write to a new location, in the folder or on a store, and return it."""
        place = new_store() if self.is_on_store else folder / f"d{next(_numbers)}"
        self.write(place)
        return place


@st.composite
def layouts(draw: st.DrawFn, has_mask: bool = False, formats: tuple[int, ...] = (2, 3)) -> ArrayLayout:
    """Draw layouts, most with Zarr chunks so small that few tokens fill several files."""
    zarr_format = draw(st.sampled_from(formats))
    chunk = draw(st.sampled_from([8, 16, 24, 1024] if has_mask else [1, 3, 8, 16, 1024]))
    shard = chunk * draw(st.integers(1, 4)) if zarr_format == 3 else None
    return ArrayLayout.create(zarr_format, chunk, shard, draw(st.sampled_from(COMPRESSIONS)))


def sequences(largest: int = 2**31 - 1, least: int = 1, most: int = 30) -> st.SearchStrategy[Sequences]:
    """Draw sequences, some of them longer than a Zarr chunk."""
    ids = st.one_of(st.integers(0, min(largest, 300)), st.integers(0, largest))
    one = st.one_of(st.lists(ids, min_size=least, max_size=5), st.lists(ids, min_size=least, max_size=70))
    return st.lists(one, max_size=most)


@st.composite
def datasets(draw: st.DrawFn, formats: tuple[int, ...] = (2, 3), most: int = 30) -> Drawn:
    splits = {"train": draw(sequences(most=most)), "validation": draw(sequences(most=3))}
    masks = None
    if draw(st.booleans()):
        bits = np.random.default_rng(draw(st.integers(0, 99)))
        masks = {
            split: [(bits.random(len(ids)) < 0.5).tolist() for ids in rows] for split, rows in splits.items()
        }
    count = len(splits["train"])
    edges = [0, *sorted(draw(st.lists(st.integers(0, count), max_size=3))), count]
    sources = [
        (f"{'ab'[number % 2]}/{number}.txt", stop - start)
        for number, (start, stop) in enumerate(itertools.pairwise(edges))
    ]
    layout = draw(layouts(masks is not None, formats))
    return Drawn(layout, splits, masks, sources, layout.zarr_format == 3 and draw(st.booleans()))


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
    return [ids[start:stop] for start, stop in itertools.pairwise([*bounds, len(ids)])]


def check_equal(array: flat_tokens.FlatTokensArray, wanted: Sequence[Sequence[int]]) -> None:
    """Compare every way of reading with numpy."""
    encoded, starts, _ = from_sequences(wanted)
    ids, flags = encoded >> 1, (encoded & 1).astype(bool)
    count = len(wanted)
    assert (array.token_count, array.seq_count, len(array)) == (len(encoded), count, count)
    assert array.encoded_tokens[:].tolist() == encoded.tolist()
    assert array.seq_starts[:].tolist() == starts.tolist()
    assert [sequence.tolist() for sequence in array] == list(wanted)
    rng = np.random.default_rng(count)
    chosen = rng.integers(-count, count, 2 * count) if count else []
    assert [found.tolist() for found in array.sequences(chosen)] == [wanted[i] for i in chosen]
    assert [array.sequence(i).tolist() for i in chosen] == [wanted[i] for i in chosen]
    for start, stop in np.sort(rng.integers(0, len(encoded) + 1, (9, 2))).tolist():
        assert array.encoded_tokens[start:stop].tolist() == encoded[start:stop].tolist()
    for length in {1, 5, max(1, len(encoded) - 1)}:
        rows = rng.permutation(len(encoded) // length)[:20]
        assert array.row_count(length) == len(encoded) // length
        gathered = rows[:, None] * length + np.arange(length)
        found = array.rows(rows, length)
        assert found.ids.tolist() == ids[gathered].tolist()
        assert found.is_start.tolist() == flags[gathered].tolist()
        for row in rows.tolist():
            assert array.row(row, length).ids.tolist() == ids[row * length :][:length].tolist()
