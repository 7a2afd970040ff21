"""Fixtures of the tests of inputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokenmill.inputs import _core

sys.path.insert(0, str(Path(__file__).parent))  # input_kinds.py, readings.py


@pytest.fixture(params=_core.simd_variants())
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a SIMD variant, which is in use until the test ends; each that this machine runs."""
    _core.set_simd_variant(request.param)
    yield request.param
    _core.set_simd_variant(_core.simd_variants()[0])
