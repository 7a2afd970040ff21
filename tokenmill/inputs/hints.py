"""Advice on arguments that are not text or do not exist, as the end of an error message.

Uses os.path, because Path.exists raises for overlong names, such as a text passed instead of a path.
"""

# ruff: noqa: PTH110, PTH118, PTH123, PTH208
from __future__ import annotations

import difflib
import os
from typing import Final

from tokenmill.stores.url import is_url

ZARR_METADATA: Final = "zarr.json"  # Zarr format 3, which every dataset on a store has
DATASET_WITHIN: Final = (
    "a Zarr dataset, not text. Pass the other files by name, or move the dataset elsewhere."
)
_HEAD_BYTES: Final = 1000
MIN_SIMILARITY: Final = 0.75  # of a suggested name, from 0 to 1


def what_no_text_is(named: str, input_format: str = "auto") -> str:
    """Return the fault of a local path to a dataset or a tokenizer, "" for any other path."""
    if is_url(named):
        return ""
    if is_zarr_group(named):
        return "a Zarr dataset, not text. Pass the text that it was made from."
    if input_format in ("auto", "jsonl") and named.endswith(".json") and _begins_as_tokenizer(named):
        return "a tokenizer, not text. Pass a text file."
    return ""


def is_zarr_group(folder: str | os.PathLike[str]) -> bool:
    """Whether a local folder is a dataset, or a group of one."""
    return any(os.path.exists(os.path.join(folder, name)) for name in (".zgroup", ZARR_METADATA))


def _begins_as_tokenizer(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return b'"version"' in head and (b'"added_tokens"' in head or b'"truncation"' in head)


def why_missing(path: str) -> str:
    """Return ". Did you mean X?" if the folder of a missing path has a similar name, else ""."""
    folder, name = os.path.split(path.rstrip("/"))
    try:
        close = difflib.get_close_matches(name, os.listdir(folder or "."), 1, MIN_SIMILARITY)
    except OSError:
        return ""
    return f". Did you mean {os.path.join(folder, close[0])}?" if close else ""
