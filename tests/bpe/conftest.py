"""Fixtures shared by the bpe tests."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpe import _core
from bpe.formats.huggingface import to_json

sys.path.insert(0, str(Path(__file__).parent))  # small_encoder.py
for name in ("inputs", "stores"):
    sys.path.insert(1, str(Path(__file__).parents[1] / name))  # input_kinds.py, web_server.py


@pytest.fixture(params=_core.simd_variants())
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """Activate each SIMD variant that this machine supports, and yield its name."""
    _core.set_simd_variant(request.param)
    yield request.param
    _core.set_simd_variant(_core.simd_variants()[0])


@pytest.fixture(scope="module")
def document(listed):
    """Return a tokenizer.json as Python values; each test changes its own copy."""
    text = to_json(listed(special_tokens=["<s>", "<t>"]))
    return lambda: json.loads(text)
