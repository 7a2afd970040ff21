"""The loops in C++ (flat_tokens/native), where the package was built with them: `core`, None elsewhere.

Each has a twin in Python, with numpy mostly, that gives the same, so that a dataset can be read where nothing is built.
FLAT_TOKENS_CORE=0 in the environment keeps to numpy."""

from __future__ import annotations

import os
from typing import Any


def find_core() -> Any:
    """The module flat_tokens._core, or None."""
    if os.environ.get("FLAT_TOKENS_CORE") == "0":
        return None
    try:
        from flat_tokens import _core
    except ImportError:  # not built, or for another Python
        return None
    return _core


core = find_core()
