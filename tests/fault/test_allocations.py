"""Allocations of the core that fail, a part of them; tools/check_allocations.py takes all."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import allocations
import pytest
from allocation_sweep import NO_MEMORY, NO_MEMORY_LEFT, AllocationSweep

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("c++") is None,
    reason="needs Linux and a C++ compiler",
)


def test_calls_raise_memory_error_and_work_the_next_time(tmp_path: Path) -> None:
    done = allocations.run(tmp_path, 7)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pretokens: 0 allocations" not in done.stdout


def test_a_conversion_without_memory_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    sweep = AllocationSweep(tmp_path)
    assert len(sweep.places) > 100
    rng = random.Random("allocations")
    for fault in (NO_MEMORY, NO_MEMORY_LEFT):
        for at in rng.sample(sweep.places, 3):
            assert sweep.point(at, fault) is None
