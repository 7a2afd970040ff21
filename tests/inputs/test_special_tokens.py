"""Separators are found as bytes.split finds them, special tokens leftmost first and then longest."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bpe.reference import cut_at_special_tokens
from tokenmill.inputs import _core


@pytest.mark.parametrize(
    "tokens",
    [
        ["<s>"],
        ["<s>", "</s>"],
        ["a", "ab", "abc", "b"],
        ["aa", "aaa", "aab"],
        ["é", "é<", "<é"],
        ["x", "<"],
        ["<s>", "</s>", "ab", "ss", "s<"],
        [f"{first}{second}" for first in "<>[]|é中" for second in "abA"],
        [f"{first}b" for first in "0123456789<>[]|/"],
        ["\0", "a\0b", "<\0\0"],
    ],
)
def test_special_tokens_as_the_reference_finds_them(variant: str, tokens: list[str]) -> None:
    rng = random.Random(2)
    pieces = [*tokens, *"<s>/abc é\0012345[]|", *(token[0] for token in tokens)]
    for count in [0, 1, 2, 3, 10, 100, 400]:
        text = "".join(rng.choices(pieces, k=count))
        expected: list[tuple[int, int]] = []
        offset = 0
        for part, is_special in cut_at_special_tokens(text, tokens):
            if is_special:
                expected.append((offset, tokens.index(part)))
            offset += len(part.encode())
        encoded = [token.encode() for token in tokens]
        starts, which = _core.find_special_tokens(text.encode(), encoded)
        assert list(zip(starts.tolist(), which.tolist(), strict=True)) == expected
        rows = _core.rows_with_special_tokens(
            text.encode(), np.array([0, len(text.encode())], np.uint64), encoded
        )
        assert rows.tolist() == [0] * bool(expected)


@pytest.mark.parametrize("count", [8, 128, 129, 300])
def test_a_token_that_ends_after_the_text_was_found(count: int) -> None:
    token = b"<" + b"-" * count + b">"
    text = memoryview(b".." + token + b"...")
    for missing in (1, 2, count):
        assert _core.find_special_tokens(text[: 2 + len(token) - missing], [token])[0].tolist() == []
    assert _core.find_special_tokens(text[: 2 + len(token)], [token])[0].tolist() == [2]
