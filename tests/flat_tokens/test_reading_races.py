"""Readers that are shared and forked give the batches of one undisturbed thread (tools/check_reading_races.py has
more of them), and the check finds a fault that was put in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "fault"))

from injector import compiler  # noqa: E402 - found on the path above
from reading_races import ReadingRaces  # noqa: E402
from web_server import web_server  # noqa: E402

from flat_tokens.storage.layout import ArrayLayout  # noqa: E402

needs_compiler = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

READ = """
import sys
import flat_tokens
train = flat_tokens.open(sys.argv[1]).train
packs = flat_tokens.PackedSequences(train, 8, strategy="best-fit", split_across_pack=True)
readers = [
    flat_tokens.Loader(train, 4, 2, streams=2),
    flat_tokens.Loader(train, 4, 2, packed=False),
    flat_tokens.Loader(packs, 8, 2),
    flat_tokens.Mixture([train, train], [1, 2], 4, 2),
]
before = set(sys.modules)
for reader in readers:
    reader.batch(3)
    list(reader.from_step(0, 5, prefetch=True))
print(*sorted(set(sys.modules) - before))
"""


@needs_compiler
def test_shared_and_forked_readers(tmp_path: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    with web_server() as server:
        races = ReadingRaces(tmp_path, 1, server)
        for number in range(4):
            run = races.run(number)
            assert not run.problem, f"run {number} of seed 1, {run.text}: {run.problem}"
            assert run.batches


@needs_compiler
def test_memory_that_is_in_use_is_noticed(tmp_path: Path) -> None:
    races = ReadingRaces(tmp_path, 0, is_careless=True)
    assert any(races.run(number).problem for number in range(4))


@pytest.mark.parametrize("compression", ["none", "zstd", "lz4"])
def test_readers_import_nothing_while_they_read(
    make_dataset: Any, random_sequences: Any, compression: str
) -> None:
    """A fork in the middle of a thread's import would leave the child with a module that stays locked."""
    layout = ArrayLayout.create(3, 16, 64, compression=compression)
    path = make_dataset(random_sequences(5, 200), layout=layout)
    done = subprocess.run(
        [sys.executable, "-c", READ, path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
