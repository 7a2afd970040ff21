"""Layouts validate themselves and fill in their defaults."""

from __future__ import annotations

from typing import Any

import pytest

from flat_tokens.errors import ArgumentError
from flat_tokens.storage.layout import ArrayLayout


def test_defaults() -> None:
    assert ArrayLayout.create() == ArrayLayout()
    assert ArrayLayout().write_unit_tokens == 2**16
    assert ArrayLayout.create(compression="none").write_unit_tokens == 2**18
    assert ArrayLayout().write_unit_starts == 2**14
    sharded = ArrayLayout.create(3)
    assert (sharded.chunk_tokens, sharded.write_unit_tokens, sharded.write_unit_starts) == (
        2**16,
        2**24,
        2**22,
    )
    assert sharded.to_json() == {
        "zarr_format": 3,
        "chunk_tokens": 2**16,
        "shard_tokens": 2**24,
        "compression": "zstd",
        "level": 1,
    }


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"zarr_format": 1}, "zarr_format"),
        ({"chunk_tokens": 0}, "chunk_tokens"),
        ({"chunk_tokens": 2**63}, "chunk_tokens"),
        ({"chunk_tokens": 4, "shard_tokens": 8}, "shard_tokens"),
        ({"zarr_format": 3, "chunk_tokens": 4, "shard_tokens": 6}, "shard_tokens"),
        ({"zarr_format": 3, "chunk_tokens": 4, "shard_tokens": 0}, "shard_tokens"),
        ({"compression": "snappy"}, "compression"),
        ({"level": 23}, "level"),
        ({"compression": "none", "level": 1}, "level"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refused(options: dict[str, Any], argument: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{argument}: "):
        ArrayLayout.create(**options)
