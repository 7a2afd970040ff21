"""Whether the words of a command name a dataset or a tokenizer: `info` and `report` are commands of both."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tokenmill.stores import is_url

_OF_DATASETS: Final = (".zgroup", "zarr.json", "manifest.json")
_OF_TOKENIZERS: Final = (".json", ".tiktoken", ".model", ".counts")
_FLAGS: Final = ("--json", "--overwrite", "--debug")  # options without a value


def are_of_dataset(words: Sequence[str]) -> bool:
    """Whether the first word that is neither an option nor its value names a dataset; if none is, whether any does."""
    named = [
        word for before, word in pairwise(["", *words]) if not _is_option(word) and not _has_value(before)
    ]
    return any(map(names_dataset, named[:1] or words))


def names_dataset(word: str) -> bool:
    """A URL, a name that ends with .zarr, or a folder that holds what a dataset does: tokenizers have none of these."""
    path = word.rstrip("/")
    if path.endswith((".zarr", ".zarr.partial")) or (is_url(word) and not path.endswith(_OF_TOKENIZERS)):
        return True
    return not _is_option(word) and any(os.path.exists(os.path.join(path, name)) for name in _OF_DATASETS)  # noqa: PTH110, PTH118 - Path's raise where the name is too long


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _has_value(word: str) -> bool:
    return _is_option(word) and "=" not in word and word not in _FLAGS
