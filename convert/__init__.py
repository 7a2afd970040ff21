"""Raw text in, a verified flat-tokens dataset out: `convert(ConvertOptions(...))`, or `tokenmill convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convert.driver.append import append
    from convert.driver.pipeline import convert
    from convert.options import ConvertOptions
    from convert.shown.summary import Summary

__all__ = ["ConvertOptions", "Summary", "append", "convert"]

_HOME = {
    "ConvertOptions": "convert.options",
    "Summary": "convert.shown.summary",
    "append": "convert.driver.append",
    "convert": "convert.driver.pipeline",
}


if not TYPE_CHECKING:  # a checker knows the names by their imports above, and tells of others

    def __getattr__(name: str) -> Any:
        """Exported names are imported on first use: `python -m convert --help` needs neither numpy nor zarr."""
        if name not in _HOME:
            raise AttributeError(f"module 'convert' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
