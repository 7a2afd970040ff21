"""Normalizing block by block gives the counts of the normalized whole, wherever blocks end."""

from __future__ import annotations

import random
import unicodedata
from collections import Counter

import pytest

from bpe import reference
from bpe.errors import BadArgument, UncoveredText
from bpe.normalizers import Form, Lowercase, Normalizer, Prepend, Replace, Strip
from bpe.patterns import PATTERNS
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretoken_counts.counts_facts import CountsFacts

SPECIALS = ["<s>", "e\u0301", "\u0301<"]
# Marks that compose with the character before them (letter, sign, space, special token); Hangul parts.
UNITS = [
    *("e", "e", " ", " ", "\n", "\u0301", "\u0323", "<s>", "é", "=\u0338", "1", "日", "本", "\u1100\u1161"),
    *("\u11a8", "'s", ".", "\r\n", "\u1e9b\u0323"),
]


def random_text(rng: random.Random) -> str:
    return "".join(rng.choices(UNITS, k=rng.randint(0, 90)))


def expected_counts(text: str, specials: list[str], pattern: str) -> dict[bytes, int]:
    counts: Counter[bytes] = Counter()
    for part, is_special in reference.cut_at_special_tokens(text, specials):
        if not is_special:
            counts.update(reference.pretokenize(unicodedata.normalize("NFC", part), pattern))
    return dict(counts)


@pytest.mark.parametrize("pattern", [*PATTERNS, r"\p{L}+|\P{L}"])
@pytest.mark.parametrize("specials", [[], SPECIALS], ids=len)
def test_blocks_of_any_size_count_like_the_whole(specials: list[str], pattern: str) -> None:
    rng = random.Random(len(pattern) + len(specials))
    for case in range(60):
        text = random_text(rng)
        counted = count_pretokens(
            [text.encode()],
            specials,
            pattern,
            block_bytes=rng.choice([1, 3, 10, 40, 10**6]),
            normalizer="NFC",
        )
        assert counted.as_dict() == expected_counts(text, specials, pattern), (case, text)
        assert counted.facts.documents == count_pretokens([text.encode()], specials, pattern).facts.documents


def test_text_that_nothing_divides_is_held() -> None:
    text = "e\u0301" * 5000 + " x" + "日本" * 3000
    counted = count_pretokens([text.encode()], block_bytes=100, normalizer="NFC")
    assert counted.as_dict() == expected_counts(text, [], "gpt2")


def test_uncovered_text_is_named_by_its_original_offset() -> None:
    text = "xe\u0301<s>e\u0301e\u0301!"
    with pytest.raises(UncoveredText, match="byte 13"):
        count_pretokens([text.encode()], ["<s>"], r"\p{L}+", normalizer="NFC")


def test_other_normalizers_are_refused() -> None:
    with pytest.raises(BadArgument, match="normalizer"):
        count_pretokens([b"a"], normalizer="NFD")  # type: ignore[arg-type]


NORMALIZERS = [
    Normalizer((Form("NFKC"), Lowercase())),
    Normalizer((Strip(),)),
    Normalizer((Prepend("_"),)),
    Normalizer((Replace("[e ]", "x", is_expression=True),)),
]


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=str)
@pytest.mark.parametrize("pattern", ["gpt2", "llama3", r"\p{L}+|\P{L}"])
def test_normalizers_of_all_kinds_are_applied_to_the_text_between_special_tokens(
    normalizer: Normalizer, pattern: str
) -> None:
    rng = random.Random(9)
    for case in range(40):
        text = random_text(rng)
        counts: Counter[bytes] = Counter()
        for part, is_special in reference.cut_at_special_tokens(text, SPECIALS):
            if not is_special:
                counts.update(reference.pretokenize(normalizer.apply(part.encode()).decode(), pattern))
        given = {"block_bytes": rng.choice([1, 10, 40, 10**6]), "normalizer": normalizer}
        counted = count_pretokens([text.encode()], SPECIALS, pattern, **given)  # type: ignore[arg-type]
        assert counted.as_dict() == dict(counts), (case, text)
        assert CountsFacts.from_json(counted.facts.to_json()).normalizer == normalizer
