"""Paths of the modules that the tests of the pages share with others."""

from __future__ import annotations

import sys
from pathlib import Path

for room in ("how_to", "stores", "flat_tokens"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))
