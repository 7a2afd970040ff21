"""Make the helper modules in this folder importable, and Arrow's memory count as address space that is used."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # others reserve address space in advance
sys.path.insert(0, str(Path(__file__).parent))

import zarr  # noqa: F401 - before the limits, or each child would import it
