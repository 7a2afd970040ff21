"""The index of a shard: every entry lies inside the file, or there is an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from flat_tokens.errors import DatasetError
from flat_tokens.storage.chunks import ABSENT, parse_index

STORED: Any = SimpleNamespace(shard_elements=8, chunk_elements=4, dtype="<u4", index_crc32c=False)


@pytest.mark.parametrize(
    "entry",
    [(0, 101), (100, 1), (41, 60), (2**64 - 2, 1), (1, 2**64 - 2), (ABSENT, 5), (5, ABSENT)],
)
def test_an_index_that_points_outside_the_file(entry: tuple[int, int]) -> None:
    data = np.array([(0, 40), entry], "<u8").tobytes()
    with pytest.raises(DatasetError):
        parse_index(STORED, data, 100, "shard")


@pytest.mark.parametrize("entry", [(0, 100), (100, 0), (40, 60), (ABSENT, ABSENT)])
def test_an_index_inside_the_file(entry: tuple[int, int]) -> None:
    data = np.array([(0, 40), entry], "<u8").tobytes()
    assert parse_index(STORED, data, 100, "shard")[1].tolist() == list(entry)
