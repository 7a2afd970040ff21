"""Text is scanned and looked up in blocks of 64 bytes: IDs equal the reference for every pattern, rule and variant,
with words of every script, any character at and between their boundaries, and runs that fill blocks.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from pretoken_ends import automaton_of, pretoken_ends

from bpe import _core
from bpe.patterns import PATTERNS
from bpe.reference import encode
from bpe.training import train

SEPARATOR = b"<|endoftext|>"
# By lead byte: ASCII, C3, CF, D0, D8, E0, E1 (four ranges), EA (two), EB, EC, ED.
SCRIPTS = [
    "abcdef",
    "éàüß",
    "λογος",
    "приветы",
    "سلام",
    "తెలుగు",
    "ሰላምነው",
    "ខ្មែរ",
    "ἀἐᾧὴ",
    "ᐊᐃᓄ",
    "ꯃꯤꯇ",
    "각곡",
    "한국어",
    "힣픽",
]
# Non-word characters: E2, E3, E5, EE, EF, F0.
WORDLESS = ["—", "”", "。", "あ", "字", "\ue000", "，", "😀"]
BETWEEN = [" ", " ", " ", " ", "", "\n", ", ", " -", "'s ", "12", *WORDLESS]


RUNS = ["-", " ", "a", "7", "\n", "=-", "Aa", "\t ", "漢", "é", "a b'12"]


def word(rng: random.Random) -> str:
    """Cover most sizes of words within a block."""
    letters = rng.choices(rng.choice(SCRIPTS), k=rng.choice([1, 2, 3, 4, 5, 6, 8, 15, 16, 20, 31, 63]))
    if rng.random() < 0.1:
        letters.insert(rng.randint(0, len(letters)), rng.choice(WORDLESS))
    return "".join(letters)


def text_of(seed: str, words: int) -> str:
    rng = random.Random(seed)
    return "".join(word(rng) + rng.choice(BETWEEN) for _ in range(words))


MERGES = train([text_of("a vocabulary", 2000).encode()], 256 + 600).merges
ENTRIES = dict(
    enumerate(
        dict.fromkeys([bytes([value]) for value in range(256)] + [left + right for left, right in MERGES])
    )
)
# No merge makes these entries: one is a word of 15 bytes, the other is part of words.
ENTRIES |= {5000: " λογοςλο".encode(), 5001: "국어ᐊ".encode()}


@cache
def texts_and_ids(rule: str, pattern: str) -> tuple[list[str], list[list[int]]]:
    """Return texts and the reference IDs, which every variant must produce."""
    texts = [text_of(f"{rule} {pattern} {size}", size) for size in [1, 2, 3, 5, 8, 13, 20, 40, 100, 200]]
    texts.append(" λογοςλο 국어ᐊ λογοςλογος")
    listed = None if rule == "ranks" else MERGES
    return texts, [encode(text, ENTRIES, listed, {}, pattern, rule != "merges") for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("rule", ["merges", "merges whole", "ranks"])
def test_texts_equal_the_reference(variant: str, rule: str, pattern: str) -> None:
    listed = None if rule == "ranks" else MERGES
    encoder = _core.EntryFile.from_entries(ENTRIES, listed).encoder(
        {}, automaton_of(pattern), rule != "merges"
    )
    texts, expected = texts_and_ids(rule, pattern)
    document = SEPARATOR.join(text.encode() for text in texts)
    for _ in range(2):  # from the cache the second time
        tokens, offsets = encoder.encode_documents(document, SEPARATOR, 1)
        for i, text in enumerate(texts):
            assert tokens[offsets[i] : offsets[i + 1]].tolist() == expected[i], repr(text)


def test_many_words_equal_those_one_by_one(variant: str) -> None:
    """Fill whole batches and blocks and grow the cache; the expected IDs come from encoding each pretoken alone."""
    rng = random.Random(13)
    texts = [text_of("many", 4000)]
    texts += [
        word(rng) + run * size + word(rng)
        for run in RUNS
        for size in (14, 15, 16, 17, *range(58, 70), 129, 1000)
    ]
    for pattern in PATTERNS:
        encoder = _core.EntryFile.from_entries(ENTRIES, MERGES).encoder({}, automaton_of(pattern), False)
        plain = _core.EntryFile.from_entries(ENTRIES, MERGES).encoder({}, None, False)
        for text in texts:
            ends = pretoken_ends(text.encode(), pattern)
            assert encoder.encode(text) == plain.encode_pretokens(text.encode(), ends).tolist(), text
