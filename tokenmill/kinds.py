"""Whether a word of a command line names a dataset or a tokenizer: `info` and `report` are commands of both."""

from __future__ import annotations

import os

from stores import is_url

_OF_DATASETS = (".zgroup", "zarr.json", "manifest.json")


def names_dataset(word: str) -> bool:
    """A URL, a name that ends with .zarr, or a folder that holds what a dataset does: tokenizers have none of these."""
    path = word.rstrip("/")
    if is_url(word) or path.endswith((".zarr", ".zarr.partial")):
        return True
    return not word.startswith("-") and any(os.path.exists(os.path.join(path, name)) for name in _OF_DATASETS)  # noqa: PTH110, PTH118 - Path's raise where the name is too long
