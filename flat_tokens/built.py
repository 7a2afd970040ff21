"""The native loops (flat_tokens/native): `core` is the module flat_tokens._core, or None if it is not built.

Every caller has a fallback in Python, mostly numpy, with the same results, so datasets can be read without the native
module. FLAT_TOKENS_CORE=0 in the environment disables it.
"""

from __future__ import annotations

import os
from typing import Any


def find_core() -> Any:
    """Return the module flat_tokens._core, or None."""
    if os.environ.get("FLAT_TOKENS_CORE") == "0":
        return None
    try:
        from flat_tokens import _core
    except ImportError:  # not built, or for another Python
        return None
    return _core


core = find_core()
