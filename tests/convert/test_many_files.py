"""Many small files take little memory in the driver, so that a million of them fit."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from inline_engine import InlineEngine
from runs import convert, sources_of

FILES = 4000


@pytest.mark.slow
@pytest.mark.promise("memory")
def test_a_file_takes_little_memory(folder: Path) -> None:
    """Includes the share of a file in everything that is held once, from the search to the verified manifest."""
    for number in range(FILES):
        path = folder / f"in/{number // 2000}/document-{number:020}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"document {number}")
    options = {"workers": 1, "chunk_tokens": 4096}
    convert(InlineEngine(), inputs=["in/0"], output="first", **options)  # imports and caches
    peaks = []
    for inputs, output in (("in/0", "half"), ("in", "out")):
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            convert(InlineEngine(), inputs=[inputs], output=output, **options)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
    assert len(sources_of("out")) == FILES
    assert (peaks[1] - peaks[0]) / (FILES // 2) < 1000
