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
DATASET_WITHIN: Final = "is a zarr dataset, not text; name what else is there, or move it elsewhere"


def what_no_text_is(named: str, input_format: str = "auto") -> str:
    """What a local path is that could be read as text but never is meant to be, and what to do; "" for others.

    A tokenizer may be meant where all inputs are said to be text, as source code is.
    """
    if is_url(named):
        return ""
    if is_zarr_group(named):
        return "is a zarr dataset, not text; name the text that it was made of"
    if input_format in ("auto", "jsonl") and named.endswith(".json") and _begins_as_tokenizer(named):
        return "is a tokenizer, not text; name the text"
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
    """Why a path that does not exist may have been given, and what to do: "; ...", or "" if nobody knows."""
    if named.startswith("~"):
        return f"; ~ is expanded by the shell alone, and not in quotes: {os.path.expanduser(named)}"  # noqa: PTH111
    if named.endswith("/") and os.path.isfile(named.rstrip("/")):  # noqa: PTH113
        return "; without the / it is a file"
    if "," in named and all(map(os.path.exists, named.split(","))):
        return "; separate paths by spaces, not by commas"
    if named.startswith("<") and named.endswith(">"):
        return "; each token goes behind an option of its own: --special-token A --special-token B"
    whole = " ".join(arguments)
    if len(arguments) > 1 and named == arguments[0] and os.path.exists(whole):  # noqa: PTH110
        return f"; a path with spaces goes in quotes: '{whole}'"
    return ""
