"""Decides whether the arguments of `info` and `report` name a dataset or a tokenizer."""

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
    """Whether the first positional argument names a dataset; without one, whether any word does."""
    named = [
        word for before, word in pairwise(["", *words]) if not _is_option(word) and not _has_value(before)
    ]
    return any(map(names_dataset, named[:1] or words))


def names_dataset(word: str) -> bool:
    """Whether the word is a URL, ends with .zarr, or is a folder with the files of a dataset."""
    path = word.rstrip("/")
    if path.endswith((".zarr", ".zarr.partial")) or (is_url(word) and not path.endswith(_OF_TOKENIZERS)):
        return True
    return not _is_option(word) and any(os.path.exists(os.path.join(path, name)) for name in _OF_DATASETS)  # noqa: PTH110, PTH118 - Path raises for long names


def _is_option(word: str) -> bool:
    return word.startswith("-")


def _has_value(word: str) -> bool:
    return _is_option(word) and "=" not in word and word not in _FLAGS
