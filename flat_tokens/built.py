"""The native loops (flat_tokens/native): `core` is the module flat_tokens._core, or None if it is not built.

Datasets are read and written without it too, with the same results. FLAT_TOKENS_CORE=0 in the environment disables it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

core: Any = None
if os.environ.get("FLAT_TOKENS_CORE") != "0":
    with suppress(ImportError):  # not built, or for another Python
        core = import_module("flat_tokens._core")
