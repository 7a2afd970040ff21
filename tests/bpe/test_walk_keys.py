"""Text scanned to keys block by block has the same IDs as its pretokens passed explicitly."""

from __future__ import annotations

import random

import pytest
from pretoken_ends import automaton_of, pretoken_ends

from bpe import _core
from bpe.patterns import PATTERNS
from bpe.reference import count_pretokens, train

WORDS = ["the", " fox", "x", " ", "'s", "1234", ".", ";)", "\n", "\t", "internationalization", "  ", "/", "A"]
BEYOND_ASCII = ["é", " ça", "“", "—", "漢字", "ё", "уменьшить", "🙂", "\u00a0", "e\u0301"]
RUNS = ["-", " ", "a", "7", "\n", "=-", "Aa", "\t ", "漢", "é"]


BYTES = [bytes([value]) for value in range(256)]
MERGES = train(count_pretokens([" ".join(WORDS + BEYOND_ASCII)]), 60)
ENTRIES = dict(enumerate(dict.fromkeys(BYTES + [left + right for left, right in MERGES])))


def encoder(pattern: str | None) -> _core.TokenizerCore:
    return _core.EntryFile.from_entries(ENTRIES, MERGES).encoder({}, pattern and automaton_of(pattern), True)


def texts(rng: random.Random) -> list[str]:
    """Return texts of every size around a block: ASCII, few or many other characters, and runs that fill blocks."""
    plain = ["".join(rng.choices(WORDS, k=size)) for size in (*range(40), 100, 300)]
    few = ["".join(rng.choices(WORDS * 8 + BEYOND_ASCII, k=size)) for size in (*range(1, 80, 3), 500)]
    many = ["".join(rng.choices(WORDS + BEYOND_ASCII * 2, k=size)) for size in (*range(1, 80, 3), 500)]
    runs = [
        rng.choice(WORDS) + run * size + rng.choice(WORDS)
        for run in RUNS
        for size in (14, 15, 16, 17, *range(58, 70), 127, 128, 129, 1000)
    ]
    marks = [
        "".join(rng.choices(["a", " ", "b'", "12"], k=200)) for _ in range(3)
    ]  # short pretokens, many per block
    return plain + few + many + runs + marks


@pytest.mark.parametrize("variant", _core.simd_variants())
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_walked_text_equals_its_given_pretokens(variant: str, pattern: str) -> None:
    best = _core.simd_variants()[0]
    _core.set_simd_variant(variant)
    try:
        walked, given = encoder(pattern), encoder(None)
        for text in texts(random.Random(13)):
            ends = pretoken_ends(text.encode(), pattern)
            assert walked.encode(text) == given.encode_pretokens(text.encode(), ends).tolist(), text
    finally:
        _core.set_simd_variant(best)
