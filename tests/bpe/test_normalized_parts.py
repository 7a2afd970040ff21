"""Texts in parts are normalized as the whole is, and given on as soon as they are decided."""

from __future__ import annotations

import pytest

from bpe.normalized_parts import NormalizedParts
from bpe.normalizers import NFC, Lowercase, Normalizer, Replace

NORMALIZERS = {
    "lowercase": (Normalizer((Lowercase(),)), True),
    "NFC": (Normalizer((NFC,)), True),
    "an expression": (Normalizer((Replace("a {2,}", "x", is_expression=True),)), False),
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_parts_are_given_on_where_that_is_known(name: str) -> None:
    normalizer, is_bounded = NORMALIZERS[name]
    parts, text = NormalizedParts(normalizer), "A  e\u0301 b " * 50
    early = [parts.feed(character.encode()) for character in text]
    assert any(early) == is_bounded
    assert b"".join(early) + parts.finish() == normalizer.apply(text.encode())
