"""Many small files take little memory, in one process: that a million do not take more than a machine has."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

import flat_tokens
from convert import ConvertOptions
from convert import convert as run_conversion
from tokenmill.engines.inline_engine import InlineEngine

FILES, IN_A_FOLDER = 4_000, 2_000


@pytest.fixture
def many(here: Path) -> Path:
    for number in range(FILES):
        path = here / "many" / f"{number // IN_A_FOLDER}" / f"document-{number:020}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"document {number}")
    return here / "many"


def options_of(folder: str, output: str) -> ConvertOptions:
    return ConvertOptions(
        inputs=[folder],
        tokenizer="tok.json",
        output=output,
        progress="none",
        workers=1,
        start_method="fork",
        chunk_tokens=4096,  # what is held of a zarr chunk is the same for both
    )


def peak_of(folder: str, output: str) -> int:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    run_conversion(options_of(folder, output), InlineEngine())
    return tracemalloc.get_traced_memory()[1] - before


def test_a_file_takes_little_memory(many: Path) -> None:
    """From finding it to the verified manifest that names it, its share of what is held once too.

    A difference between few files and many tells less: what is held some thousands at a time hides it.
    """
    run_conversion(options_of("many/0", "warm"), InlineEngine())  # what is made once, and kept
    tracemalloc.start()
    try:
        peak = peak_of("many", "all")
    finally:
        tracemalloc.stop()
    assert len(flat_tokens.open(many.parent / "all").sources()) == FILES
    assert peak / FILES < 750
