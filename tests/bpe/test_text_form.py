"""Added tokens that are runs of a character, and need not be looked for where merges make them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bpe.added_tokens import AddedToken
from bpe.text_form import _needless_runs


class _Encoder:
    """Merges runs as it is told to."""

    def __init__(self, ids_of: dict[int, list[int]]) -> None:
        self._ids_of = ids_of

    def encode_pretokens(self, text: bytes, ends: Any) -> Any:
        return np.array(self._ids_of[len(text)])


@pytest.mark.parametrize(
    ("of_three", "needless"), [([3, 1], {"\n", "\n\n"}), ([1, 3], set()), ([1, 1, 1], set())]
)
def test_runs_are_needless_where_merges_make_them(of_three: list[int], needless: set[str]) -> None:
    tokens = [AddedToken("\n" * size, id_, special=False) for size, id_ in ((1, 1), (2, 3), (4, 5))]
    encoder: Any = _Encoder({1: [1], 2: [3], 3: of_three})
    assert _needless_runs(encoder, "\n", tokens) == needless
