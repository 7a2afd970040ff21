"""Converts raw text to a verified flat-tokens dataset: `convert(ConvertOptions(...))`, or `tokenmill convert`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convert.cli.summary import Summary
    from convert.driver.conversion import convert, encode_share
    from convert.options import ConvertOptions

__all__ = ["ConvertOptions", "Summary", "convert", "encode_share"]

_MODULE_OF = {
    "ConvertOptions": "convert.options",
    "Summary": "convert.cli.summary",
    "convert": "convert.driver.conversion",
    "encode_share": "convert.driver.conversion",
}


if not TYPE_CHECKING:  # type checkers know the names from the imports above and report unknown ones

    def __getattr__(name: str) -> Any:
        """Import an exported name on first use, so that `python -m convert` can prepare the process before."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'convert' has no attribute {name!r}")
        return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
