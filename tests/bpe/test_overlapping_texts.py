"""Overlaps of texts of two kinds, found at once as pair by pair."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from bpe.errors import UnsupportedTokenizer
from bpe.formats.huggingface import read
from bpe.formats.overlapping_texts import MAX_CHARACTERS, first_overlap


def can_overlap(first: str, second: str) -> bool:
    if first in second or second in first:
        return True
    sizes = range(1, min(len(first), len(second)))
    return any(first.endswith(second[:size]) or second.endswith(first[:size]) for size in sizes)


@pytest.mark.parametrize(("letters", "longest"), [("ab", 9), ("abcd", 5), ("aé漢😀", 6)])
def test_in_one_go_as_pair_by_pair(letters: str, longest: int) -> None:
    drawn = random.Random(4)
    found = 0
    for _ in range(2000):
        texts = list(
            {"".join(drawn.choices(letters, k=drawn.randint(1, longest))) for _ in range(drawn.randint(0, 6))}
        )
        cut = drawn.randint(0, len(texts))
        some, others = texts[:cut], texts[cut:]
        overlap = first_overlap(some, others)
        assert (overlap is not None) == any(can_overlap(one, other) for one in some for other in others), (
            texts
        )
        if overlap:
            assert overlap[0] in some
            assert overlap[1] in others
            assert can_overlap(*overlap)
            found += 1
    assert 100 < found < 1900


@pytest.mark.parametrize("last", ["<y>", "x" * 1200, "abc", "c>"])
def test_many_tokens_beside_one_of_over_1000_characters(last: str, listed: Any) -> None:
    """8,000 of each kind took minutes: pair by pair."""
    root = json.loads(listed(special_tokens=[]).canonical_json)
    texts = [f"<{number:05}{'abc' * (number % 5)}>" for number in range(16_000)]
    texts[1] = "<" + "y" * 1100 + ">"
    size = len(root["model"]["vocab"])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "special": True}
    root["added_tokens"] = [
        {"id": size + place, "content": text, "normalized": place % 2 == 0, **flags}
        for place, text in enumerate([*texts, last])
    ]
    if last in ("abc", "c>"):
        with pytest.raises(
            UnsupportedTokenizer, match=f"'{last}' and .* can overlap and differ in normalized"
        ):
            read(json.dumps(root).encode())
    else:
        assert len(read(json.dumps(root).encode()).vocabulary.special_tokens) == 16_001


def test_more_than_can_be_compared() -> None:
    assert first_overlap(["a" * MAX_CHARACTERS], []) is None
    with pytest.raises(UnsupportedTokenizer, match="more than 1,000,000 characters and differ in normalized"):
        first_overlap(["a" * MAX_CHARACTERS], ["b"])
