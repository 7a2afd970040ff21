"""Makes the modules next to this file importable and loads the Hypothesis profile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]  # naive, runs; strategies

import strategies  # noqa: E402

strategies.load_profile()

from runs import workplace  # noqa: E402


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new current folder that holds tok.json."""
    with workplace() as path:
        yield path
