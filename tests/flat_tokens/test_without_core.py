"""Without the compiled core, datasets are written, read and verified with the same results, at usable speed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys, time
import numpy as np
import flat_tokens
from flat_tokens.built import core

rng = np.random.default_rng(3)
sequences = [rng.integers(0, 30, length).tolist() for length in rng.integers(1, 60, 300)]
started = time.process_time()
with flat_tokens.Writer(sys.argv[1]) as writer:
    for ids in [*sequences, *[np.arange(50_000)] * 20]:
        writer.add("train", ids)
assert flat_tokens.verify_dataset(sys.argv[1]).ok
assert time.process_time() - started < 20, "the loops in Python take minutes"
train = flat_tokens.open(sys.argv[1]).train
assert [train.sequence(number).tolist() for number in range(300)] == sequences
loader = flat_tokens.Loader(train, 4, 8, 3, block_tokens=40)
print([loader.batch(step).inputs.tolist() for step in (0, 1, len(loader) + 1)])
packs = flat_tokens.PackedSequences(train, 64, split_across_pack=True)
print(core is None, len(packs), [packs[number].tokens.tolist() for number in (0, 5)])
"""


def run(root: Path, core: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", CODE, str(root)],
        env={**os.environ, "FLAT_TOKENS_CORE": core},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_the_results_are_the_same(tmp_path: Path) -> None:
    pytest.importorskip("flat_tokens._core")
    with_core, without = run(tmp_path / "a", "1"), run(tmp_path / "b", "0")
    assert "\nFalse " in with_core
    assert without == with_core.replace("\nFalse ", "\nTrue ")
