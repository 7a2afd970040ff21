"""The native loops (flat_tokens/native).

core    the module flat_tokens._core, or None if it is not built. Datasets are written, verified and read without it
        too, with the same tokens. FLAT_TOKENS_CORE=0 in the environment disables it.
native  the same module for orders, batches and packs, which have no other implementation: their first use raises
        ImportError without it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

core: Any = None
if os.environ.get("FLAT_TOKENS_CORE") != "0":
    with suppress(ImportError):  # not built, or for another Python
        core = import_module("flat_tokens._core")


class _NotBuilt:
    def __getattr__(self, name: str) -> Any:
        raise ImportError("flat_tokens: the native module _core is not built; reinstall tokenmill")


if TYPE_CHECKING:
    from flat_tokens import _core as native
else:
    native = core or _NotBuilt()

__all__ = ["core", "native"]
