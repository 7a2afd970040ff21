"""What an input was meant to be that is no text or is not there, as the end of a message.

By os.path throughout: Path's `exists` raises where a name is too long, as that of a text in place of a path.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from tokenmill.stores.url import is_url

_HEAD_BYTES: Final = 1000
ZARR_METADATA: Final = "zarr.json"  # of format 3, which all datasets on stores have
DATASET_WITHIN: Final = (
    "a Zarr dataset, not text. Pass the other files by name, or move the dataset elsewhere."
)


def what_no_text_is(named: str, input_format: str = "auto") -> str:
    """What a local path is that could be read as text but never is meant to be, and what to do; "" for others.

    A tokenizer may be meant where all inputs are said to be text, as source code is.
    """
    if is_url(named):
        return ""
    if is_zarr_group(named):
        return "a Zarr dataset, not text. Pass the text that it was made from."
    if input_format in ("auto", "jsonl") and named.endswith(".json") and _begins_as_tokenizer(named):
        return "a tokenizer, not text. Pass a text file."
    return ""


def is_zarr_group(folder: str | os.PathLike[str]) -> bool:
    """Whether a local folder is a dataset, or a group of one."""
    names = (".zgroup", ZARR_METADATA)
    return any(os.path.exists(os.path.join(folder, name)) for name in names)  # noqa: PTH110, PTH118


def _begins_as_tokenizer(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return b'"version"' in head and (b'"added_tokens"' in head or b'"truncation"' in head)


def why_missing(named: str, arguments: Sequence[str]) -> str:
    """Return how to fix a path that does not exist, as the end of a message: ". Do this.", or "" if that is unknown."""
    if named.startswith("~"):
        return f". Pass {os.path.expanduser(named)}, because the shell expands ~ only outside quotes."  # noqa: PTH111
    if named.endswith("/") and os.path.isfile(named.rstrip("/")):  # noqa: PTH113
        return ". Remove the / at the end of the file name."
    if "," in named and all(map(os.path.exists, named.split(","))):
        return ". Separate paths with spaces instead of commas."
    if named.startswith("<") and named.endswith(">"):
        return ". Repeat the option for each token: --special-token A --special-token B."
    whole = " ".join(arguments)
    if len(arguments) > 1 and named == arguments[0] and os.path.exists(whole):  # noqa: PTH110
        return f". Quote a path with spaces: '{whole}'."
    return ""
