"""Makes the modules next to this file importable."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from runs import workplace


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new current folder that holds tok.json."""
    with workplace() as path:
        yield path
