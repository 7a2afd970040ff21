"""Cutting a text into parts never changes its IDs, whatever the pattern, and memory stays bounded."""

from __future__ import annotations

import itertools
import random
import tracemalloc

import pytest
from splits import split

from bpe import AddedToken, Tokenizer
from bpe.errors import InvalidText
from bpe.normalizers import Normalizer, Prepend, Replace
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import TextRules

GAPPY = Pretokenizer((split(r"[A-Za-z]+|\p{N}{2}", "drop"),))


def in_parts(tokenizer, parts, block_bytes=1):
    blocks = tokenizer.encode_blocks((part.encode() for part in parts), min_bytes=block_bytes)
    return [id_ for ids in blocks for id_ in ids.tolist()]


@pytest.mark.parametrize("block_bytes", [1, 2, 7, 64])
def test_every_cut_of_nasty_text(listed, pattern, nasty_texts, block_bytes):
    tokenizer = listed(pattern)
    for name, text in nasty_texts.items():
        expected = tokenizer.encode(text)
        assert in_parts(tokenizer, text, block_bytes) == expected, name
        for cut in range(0, len(text), max(1, len(text) // 20)):
            assert in_parts(tokenizer, [text[:cut], text[cut:]], block_bytes) == expected, (name, cut)


def test_random_parts_of_random_text(listed, pattern, random_texts):
    tokenizer = listed(pattern, special_tokens=["<|endoftext|>", "<|end", "e", "\n\n"])
    generator = random.Random(4)
    for text in random_texts(seed=5, count=60, size=60):
        cuts = sorted(generator.randrange(len(text) + 1) for _ in range(generator.randrange(8)))
        parts = [text[start:stop] for start, stop in itertools.pairwise([0, *cuts, len(text)])]
        assert in_parts(tokenizer, parts, generator.choice([1, 5, 30])) == tokenizer.encode(text), repr(parts)


def test_every_cut_of_special_tokens(listed):
    """Tokens that start, end or contain one another, surrounded by parts of tokens."""
    tokenizer = listed(special_tokens=["<s>", "<s>>", "<s><", "s>x", "éé"])
    texts = [
        "a<s>b",
        "<s><s>>",
        "<s><s",
        "<s>x<s>>x",
        "<<s>>",
        "ééé",
        "<s",
        "xé",
        "<s>>>",
        "<s><s><s>>",
        "é<s>éé<",
    ]
    for text in texts:
        for first, second in itertools.combinations_with_replacement(range(len(text) + 1), 2):
            parts = [text[:first], text[first:second], text[second:]]
            assert in_parts(tokenizer, parts) == tokenizer.encode(text), parts


def test_allowed_special(listed):
    tokenizer = listed(special_tokens=["<a>", "<ab>"])
    for allowed in ((), ("<a>",), ("<a>", "<ab>")):
        text = "x<a><ab>y"
        assert list(tokenizer.encode_iterable(text, allowed)) == tokenizer.encode(text, allowed)


@pytest.mark.parametrize(
    "text", ["e\u0301", "ae\u0301\u0323o", "\u1100\u1161\u11a8x", "Cafe\u0301 <s>\u0301e\u0301", "\u0301"]
)
def test_normalization_across_parts(listed, text):
    tokenizer = listed("qwen2", special_tokens=["<s>"], normalizer="NFC")
    for cut in range(len(text) + 1):
        assert in_parts(tokenizer, [text[:cut], text[cut:]]) == tokenizer.encode(text), cut
    assert in_parts(tokenizer, text) == tokenizer.encode(text)


def test_an_expression_that_the_core_does_not_have(listed, nasty_texts):
    tokenizer = listed(GAPPY)
    text = "<|endoftext|>".join(nasty_texts.values())
    assert in_parts(tokenizer, text) == tokenizer.encode(text)


def test_it_is_lazy_and_bounded(listed):
    """6 MB of text: buffers stay a small multiple of a block, and the first IDs come after the first block."""
    tokenizer = listed()
    given = 0

    def parts():
        nonlocal given
        for _ in range(60):
            given += 1
            yield "The quick brown fox it's 123 \n" * 3400

    tracemalloc.start()
    ids = tokenizer.encode_iterable(parts())
    next(ids)
    assert given == 1
    count = 1 + sum(1 for _ in ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60 * 3400 * len(tokenizer.encode("The quick brown fox it's 123 \n"))
    assert peak < 10e6


def test_a_giant_pretoken_costs_linear_time(listed):
    tokenizer = listed()
    assert len(in_parts(tokenizer, ["x" * 1000] * 1000, 64 << 10)) == len(tokenizer.encode("x" * 10**6))


def test_nothing(listed):
    assert list(listed().encode_iterable([])) == []
    assert list(listed().encode_iterable(["", ""])) == []


def test_a_lone_surrogate_is_named(listed):
    with pytest.raises(InvalidText):
        list(listed().encode_iterable(["ab", "cd\ud800"]))


def test_a_token_before_a_cut_keeps_the_prefix_of_a_later_prepend() -> None:
    """The text after an added token gets a prefix, also if Prepend is not the first step."""
    tokenizer = Tokenizer(
        {0: "▁".encode(), 1: b"b", 2: b"  "},
        [],
        [AddedToken("  ", 2)],
        Pretokenizer(()),
        normalizer=Normalizer((Replace(" ", "▁"), Prepend("▁"))),
        text_rules=TextRules(),
    )
    assert tokenizer.encode("b  b") == [0, 1, 2, 0, 1]
    assert in_parts(tokenizer, ["b  b"]) == [0, 1, 2, 0, 1]
