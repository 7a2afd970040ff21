"""A flipped bit in any file of a dataset is found by verify, and never gives wrong batches where checksums exist."""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench import DRIVER
from jobs import CONVERT, MASKED, make_inputs
from processes import start

import flat_tokens
from flat_tokens.errors import FlatTokensError

# Layouts, and whether each of their chunks has a checksum.
LAYOUTS = {
    "zstd": (CONVERT, True),
    "none": (f"{CONVERT} --compression none", False),
    "zstd, format 3": (f"{CONVERT} --zarr-format 3", True),
    "none, format 3": (f"{CONVERT} --zarr-format 3 --compression none", True),
    "mask": (MASKED, True),
    "mask, format 3": (f"{MASKED} --zarr-format 3", True),
}


def epoch(root: Path) -> list[np.ndarray[Any, Any]]:
    """Return all batches of an epoch over both splits, and all sequences."""
    dataset = flat_tokens.open(root)
    found: list[np.ndarray[Any, Any]] = []
    for split in (dataset.train, dataset.validation):
        loader = flat_tokens.Loader(split, seq_len=16, batch_size=4, seed=1)
        for step in range(loader.steps_per_epoch):
            batch = loader.batch(step)
            found += [batch.inputs.copy(), batch.targets.copy(), batch.is_seq_start.copy()]
        found += [split.sequence(number) for number in range(split.seq_count)]
    return found


def outcome(root: Path, expected: list[np.ndarray[Any, Any]]) -> str:
    try:
        found = epoch(root)
    except (FlatTokensError, OSError):
        return "error"
    return "right" if len(found) == len(expected) and all(map(np.array_equal, found, expected)) else "wrong"


def is_found(root: Path) -> bool:
    try:
        return not flat_tokens.verify_dataset(root).ok
    except FlatTokensError:
        return True


@pytest.mark.promise("damage")
@pytest.mark.promise("checksums")
@pytest.mark.stress
@pytest.mark.parametrize("layout", LAYOUTS)
def test_flips(layout: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    command, has_checksums = LAYOUTS[layout]
    make_inputs(tmp_path)
    assert start([sys.executable, DRIVER, "{}", *command.split()], tmp_path).wait().code == 0
    sound, broken = tmp_path / "out", tmp_path / "broken"
    expected, outcomes, problems = epoch(sound), Counter[str](), []
    files = sorted(path for path in sound.rglob("*") if path.is_file() and path.stat().st_size)
    assert not is_found(sound)
    seed, count = request.config.getoption("--seed"), request.config.getoption("--points")
    for number in range(count):
        rng = random.Random(f"{layout} {seed} {number}")
        shutil.copytree(sound, broken)
        file = broken / rng.choice(files).relative_to(sound)
        data = bytearray(file.read_bytes())
        bit = rng.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        file.write_bytes(data)
        result = outcome(broken, expected)
        outcomes[result] += 1
        if not is_found(broken) or (has_checksums and result == "wrong"):
            problems.append(f"{file.relative_to(broken)} bit {bit}: epoch {result}")
        shutil.rmtree(broken)
    print(f"{layout}: {count} flips, seed {seed}: {dict(outcomes)}")
    assert not problems, "\n".join(problems)
