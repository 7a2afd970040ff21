"""Sources come back from their columns as they were put in; a source takes little memory."""

from __future__ import annotations

import os
import pickle
import random
import tracemalloc

import pytest

from tokenmill.inputs.kinds import Kind
from tokenmill.inputs.source_list import Source, SourceList


def some_sources(count: int) -> list[Source]:
    rng = random.Random(0)
    folders = ["", "a/", "/a/b/", "./", "é/", "a//b/", os.fsdecode(b"\xff\xfe/")]
    return [
        Source(
            rng.choice(folders) + f"{number}{rng.choice(['', 'ש', ' x'])}",
            rng.choice([0, 1, 2**62]),
            rng.choice([0, -1, 10**9, 2**63 - 1, -(2**63)]),
            rng.choice([None, "validation"]),
            rng.choice([Kind(), Kind("jsonl", "gz")]),
            rng.choice([None, "0123456789abcdef"]),
            rng.choice(["", '"etag"']),
            rng.choice([(), (("endpoint", "x"),)]),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_they_come_back(count: int) -> None:
    sources = some_sources(count)
    columns = SourceList(sources)
    for found in (columns, pickle.loads(pickle.dumps(columns))):
        assert len(found) == count
        assert list(found) == sources
        assert [found[number] for number in range(count)] == sources
        assert [found[number - count] for number in range(count)] == sources
        assert found[1:-1] == sources[1:-1]
        for number in (count, -count - 1):
            with pytest.raises(IndexError):
                found[number]


def test_kinds_and_sizes() -> None:
    text, lines = Kind(), Kind("jsonl")
    sources = SourceList(
        [
            Source("a", 3, 0, kind=text),
            Source("b", 4, 0, kind=lines),
            Source("c", 5, 0, "validation", kind=text),
        ]
    )
    assert sources.kinds == {text, lines}
    assert (sources.largest_of(text), sources.largest_of(lines)) == (2, 1)
    assert sources.starts().tolist() == [0, 3, 7, 12]
    assert SourceList().starts().tolist() == [0]


def test_a_source_takes_little_memory() -> None:
    """A tuple takes 350 bytes."""
    count = 20_000
    names = [f"some/folder/part-{number // 100:05}/{'n' * 40}{number:06}.txt" for number in range(count)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        columns = SourceList(Source(name, 100, 10**18 + number) for number, name in enumerate(names))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(columns) == count
    assert taken / count < 105  # 50 are the name
