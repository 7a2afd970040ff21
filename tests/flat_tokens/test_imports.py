"""Readers import no modules while reading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flat_tokens.storage.layout import ArrayLayout

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.mark.parametrize("compression", ["none", "zstd", "lz4"])
def test_readers_import_nothing_while_they_read(
    make_dataset: Any, random_sequences: Any, compression: str
) -> None:
    """A fork during an import in another thread would leave the module locked in the child."""
    layout = ArrayLayout.create(3, 16, 64, compression=compression)
    path = make_dataset(random_sequences(5, 200), layout=layout)
    done = subprocess.run(
        [sys.executable, "-c", READ, path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
