"""Drawn datasets: sequences, loss masks, sources and layouts, written to a folder or a store."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flat_tokens
from flat_tokens.storage.layout import ArrayLayout
from tests.flat_tokens.small_datasets import write_dataset
from tokenmill.stores import open_store

COMPRESSIONS = ["zstd", "none", "lz4", "lz4-bitshuffle"]
_numbers = itertools.count()


@dataclass(frozen=True)
class Drawn:
    """sequences: the train split. trained: its loss mask, or None. sources: (path, number of train sequences)."""

    sequences: list[list[int]]
    trained: list[bool] | None
    sources: list[tuple[str, int]]
    layout: ArrayLayout
    is_on_store: bool

    @property
    def ids(self) -> list[int]:
        return list(itertools.chain.from_iterable(self.sequences))

    @property
    def origins(self) -> list[tuple[str, int]]:
        """Return the source of each sequence and its index there."""
        return [(path, record) for path, count in self.sources for record in range(count)]

    def write(self, folder: Path) -> Any:
        """Write to a new location, and return it in a form that `flat_tokens.open` accepts."""
        name = f"d{next(_numbers)}"
        place: Any = open_store(f"memory://{folder.name}-{name}") if self.is_on_store else folder / name
        facts = [
            {"path": path, "train_sequences": count, "validation_sequences": 0}
            for path, count in self.sources
        ]
        masks = None if self.trained is None else {"train": self.trained, "validation": []}
        write_dataset(place, self.sequences, [], self.layout, masks, facts)
        return place

    def open(self, folder: Path) -> flat_tokens.Dataset:
        return flat_tokens.open(self.write(folder))


@st.composite
def layouts(draw: st.DrawFn, has_mask: bool = False) -> ArrayLayout:
    zarr_format = draw(st.sampled_from([2, 3]))
    chunk = draw(st.sampled_from([8, 16, 24, 1024] if has_mask else [1, 3, 8, 16, 1024]))
    shard = chunk * draw(st.integers(1, 4)) if zarr_format == 3 else None
    return ArrayLayout.create(zarr_format, chunk, shard, draw(st.sampled_from(COMPRESSIONS)))


@st.composite
def datasets(draw: st.DrawFn, most: int = 30) -> Drawn:
    largest = draw(st.sampled_from([1, 300, 2**17, 2**31 - 1]))
    sequences = draw(st.lists(st.lists(st.integers(0, largest), min_size=1, max_size=12), max_size=most))
    count = sum(map(len, sequences))
    trained = draw(st.none() | st.lists(st.booleans(), min_size=count, max_size=count))
    cuts = sorted(draw(st.lists(st.integers(0, len(sequences)), max_size=3)))
    edges = list(itertools.pairwise([0, *cuts, len(sequences)]))
    sources = [
        (f"{'ab'[number % 2]}/{number}.txt", stop - start) for number, (start, stop) in enumerate(edges)
    ]
    layout = draw(layouts(trained is not None))
    return Drawn(sequences, trained, sources, layout, layout.zarr_format == 3 and draw(st.booleans()))


def check_equal(array: flat_tokens.FlatTokensArray, wanted: Sequence[Sequence[int]]) -> None:
    """Compare every way of reading with numpy."""
    encoded, starts, _ = flat_tokens.format.from_sequences(wanted)
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
