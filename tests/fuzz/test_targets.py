"""Run a few inputs of each fuzz target, and check that the limits detect every forbidden action."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from bounded_run import run_inputs
from hostile_datasets import write_sound
from targets import TARGETS
from targets_datasets import read_all

from flat_tokens.errors import DatasetError

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits address space as Linux does"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),  # Python 3.12 warns about fork
]


@pytest.mark.slow
@pytest.mark.promise("untrusted")
@pytest.mark.parametrize("name", TARGETS)
def test_readers_stay_within_their_limits(name: str) -> None:
    assert run_inputs(TARGETS[name], "11", range(6))[0] == []


@pytest.mark.promise("untrusted")
@pytest.mark.stress
@pytest.mark.parametrize("name", TARGETS)
def test_campaign(name: str, request: pytest.FixtureRequest) -> None:
    """`pytest tests/fuzz -m stress --points 10000 --seed S` runs 10,000 inputs of each target."""
    seed, count = request.config.getoption("--seed"), request.config.getoption("--points")
    violations, refused = run_inputs(TARGETS[name], seed, range(count))
    print(f"{name}: {count} inputs, {refused} refused, {len(violations)} wrong")
    assert violations == []


@pytest.mark.parametrize("seed", range(5))
def test_a_sound_dataset_is_read(tmp_path: Path, seed: int) -> None:
    write_sound(tmp_path / "d", random.Random(seed))
    read_all(tmp_path / "d")


def refuse(_: object) -> None:
    raise DatasetError("a line")


def write(made: Any) -> None:
    (made / "new").write_bytes(b"a")
