"""Small datasets for the flat_tokens tests."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flat_tokens.storage.layout import ArrayLayout

# Import paths of shared test modules.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "stores")]

from small_datasets import EXAMPLE, Sequences, write_dataset  # noqa: E402

MakeDataset = Callable[..., Path]


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """Yield the address of moto's S3 server."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    from servers import moto_server

    with moto_server() as address:
        yield address


@pytest.fixture
def make_dataset(tmp_path: Path) -> MakeDataset:
    """make_dataset(train=EXAMPLE, validation=[], layout=ArrayLayout()) returns the path of a finished dataset."""

    def make(
        train: Sequences = EXAMPLE,
        validation: Sequences = (),
        layout: ArrayLayout | None = None,
        name: str = "d",
    ) -> Path:
        write_dataset(tmp_path / name, train, validation, layout or ArrayLayout())
        return tmp_path / name

    return make


@pytest.fixture
def random_sequences() -> Callable[..., list[list[int]]]:
    """random_sequences(seed, count, longest, largest_id) returns sequences of 1 to `longest` IDs."""

    def make(seed: int, count: int, longest: int = 9, largest_id: int = 27) -> list[list[int]]:
        rng = random.Random(seed)
        return [[rng.randint(0, largest_id) for _ in range(rng.randint(1, longest))] for _ in range(count)]

    return make
