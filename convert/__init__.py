"""Converts raw text to a verified flat-tokens dataset: `convert(ConvertOptions(...))`, or `tokenmill convert`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["ConvertOptions", "Summary", "convert", "encode_share"]

if TYPE_CHECKING:
    from convert.cli.summary import Summary
    from convert.driver.conversion import convert, encode_share
    from convert.options import ConvertOptions
else:

    def __getattr__(name: str) -> Any:
        """Import an exported name on first use, so that `python -m convert` can prepare the process before."""
        if name not in __all__:
            raise AttributeError(f"module 'convert' has no attribute {name!r}")
        modules = {"ConvertOptions": "convert.options", "Summary": "convert.cli.summary"}
        return getattr(import_module(modules.get(name, "convert.driver.conversion")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
