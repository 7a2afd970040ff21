"""Cutting a text into parts never changes its IDs, however long its pretokens, and little text is held."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bpe import AddedToken, Tokenizer, reference
from bpe.errors import InvalidText
from bpe.normalizers import Normalizer, Prepend, Replace
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import TextRules

# Runs of one kind, and runs decided late: spaces after a line break, capitals after a letter without case.
KINDS = [
    *("a", "B", "字", "\u0301", "7", "!", "\0", " ", "\n", "\u3000", "ǅ", "ʰ"),
    *("ab", "the", "aB", "字B", "字b", "!\u0301", "!\n", "/\n", " \n", "\r\n", "!'", "a'", "a's", "\t "),
    *("aBc字", "B\u0301", "!/", "12", "e\u0301", "ab cd", "\u1100\u1161\u11a8", "a\u0323\u0301", "\u0344"),
]
TOKENS = ["<|end|>", "<|", "'''", "<s>", "<s>>", "<s><", "s>x", "éé"]


def in_parts(tokenizer: Tokenizer, parts: Any, min_bytes: int = 1) -> list[int]:
    blocks = tokenizer.encode_blocks((part.encode() for part in parts), min_bytes=min_bytes)
    return [id_ for ids in blocks for id_ in ids.tolist()]


def cut_up(text: str, rng: random.Random, longest: int) -> Iterator[str]:
    place = 0
    while place < len(text):
        stop = place + rng.randrange(1, longest + 1)
        yield text[place:stop]
        place = stop


def nasty_text(rng: random.Random) -> str:
    """Return a few long runs with something before, between and after them."""
    parts = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind, size = rng.choice(KINDS), rng.choice([1, 2, 30, 150, 400])
        parts.append(
            "".join(rng.choices(kind, k=size)) if rng.random() < 0.5 else kind * (size // len(kind) + 1)
        )
    between = rng.choice([*TOKENS, "", "", ""])
    ends = (
        rng.choice(["", " ", "\n", "!", "x ", *TOKENS]),
        rng.choice(["", "", "x", "b", "\n", "'s", " y", "<s"]),
    )
    return between.join(parts).join(ends)


@pytest.mark.parametrize("normalizer", [None, "NFC"])
def test_runs_have_the_ids_of_the_whole(
    pattern: str, normalizer: str | None, listed: Callable[..., Tokenizer]
) -> None:
    tokenizer = listed(pattern, special_tokens=TOKENS, normalizer=normalizer)
    rng = random.Random(pattern)
    for _ in range(200):
        text, min_bytes = nasty_text(rng), rng.choice([1, 5, 40, 100])
        found = in_parts(tokenizer, cut_up(text, rng, rng.choice([1, 7, 60])), min_bytes)
        assert found == tokenizer.encode(text), repr(text)


def test_every_cut_of_special_tokens(listed: Any) -> None:
    """Tokens that start, end or contain one another, surrounded by parts of tokens."""
    tokenizer = listed(special_tokens=TOKENS)
    texts = "a<s>b <s><s>> <s><s <s>x<s>>x <<s>> ééé <s xé <s>>> <s><s><s>> é<s>éé<".split()
    for text in texts:
        for first, second in itertools.combinations_with_replacement(range(len(text) + 1), 2):
            parts = [text[:first], text[first:second], text[second:]]
            assert in_parts(tokenizer, parts) == tokenizer.encode(text), parts


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["merges", "ranks", "whole"])
def test_windows_have_the_tokens_of_the_reference(rule: str) -> None:
    """Vocabularies of random merges over few letters: unordered ranks, entries that merges do not reach."""
    rng = random.Random(rule)
    joined = refused = 0
    for _ in range(40):
        merges: list[tuple[bytes, bytes]] = []
        entries = [b"a", b"b", b"c"]
        for _ in range(rng.randrange(1, 25)):
            left, right = rng.choice(entries), rng.choice(entries)
            if (left, right) not in merges and len(left + right) < 14:
                merges.append((left, right))
                if left + right not in entries:
                    entries.append(left + right)
        if rule != "ranks":
            rng.shuffle(merges)
        vocab = dict(enumerate(dict.fromkeys([*entries, *(bytes([byte]) for byte in range(256))])))
        id_of = {entry: id_ for id_, entry in vocab.items()}
        ranks = None if rule == "ranks" else {pair: rank for rank, pair in enumerate(merges)}
        whole = rule != "merges"
        tokenizer = Tokenizer(vocab, None if rule == "ranks" else merges, ignore_merges=whole)
        for _ in range(6):
            unit = "".join(rng.choices("abc", k=rng.choice([1, 1, 2, 3, 20])))
            drawn = rng.choices([unit, "a", "b", "c"], weights=[9, 1, 1, 1], k=rng.choice([9, 60, 300]))
            text = "".join(drawn)[:400]
            blocks = (part.encode() for part in cut_up(text, rng, 99))
            try:
                got = [*tokenizer.encode_blocks(blocks, "all", rng.choice([1, 20, 60]))]
            except InvalidText:  # windows share no boundary: never wrong IDs
                refused += 1
                continue
            assert np.concatenate(got).tolist() == reference.encode_pretoken(
                text.encode(), id_of, ranks, whole
            )
            joined += len(got) > 2
    assert joined > 50
    assert refused < 20


@pytest.mark.parametrize(
    "unit", ["a", "字", " ", "\n", "\0", "7", "\u0301", "the", "\n ", "a'", "字b", "aB", "!\n"]
)
@pytest.mark.parametrize("begin", ["", "\n", "字", "!"])
def test_little_is_held_of_a_long_pretoken(begin: str, unit: str, pattern: str, listed: Any) -> None:
    """One pretoken of 60,000 characters is encoded as it arrives, unless its start depends on its end."""
    tokenizer = listed(pattern)
    text = begin + unit * (60_000 // len(unit)) + "x"
    blocks = (part.encode() for part in cut_up(text, random.Random(1), 1500))
    parts = [part.copy() for part in tokenizer.encode_blocks(blocks, "all", 1000)]
    assert np.concatenate(parts).tolist() == tokenizer.encode(text)
    starts_late = begin + unit == "\n " or (begin + unit == "字B" and pattern == "o200k")
    assert starts_late or max(map(len, parts)) < 20_000


def test_it_is_lazy_and_bounded(listed: Any) -> None:
    """6 MB of text: buffers stay a small multiple of a block, and the first IDs come after the first block."""
    tokenizer, line = listed(), "The quick brown fox it's 123 \n"
    given: list[str] = []

    def parts() -> Iterator[str]:
        for _ in range(60):
            given.append("")
            yield line * 3400

    tracemalloc.start()
    ids = tokenizer.encode_iterable(parts())
    next(ids)
    assert len(given) == 1
    count = 1 + sum(1 for _ in ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60 * 3400 * len(tokenizer.encode(line))
    assert peak < 10e6
    assert list(tokenizer.encode_iterable(["", ""])) == list(tokenizer.encode_iterable([])) == []


@pytest.mark.promise("linear-time")
def test_a_giant_pretoken_costs_linear_time(listed: Any) -> None:
    assert len(in_parts(listed(), ["x" * 1000] * 1000, 64 << 10)) == len(listed().encode("x" * 10**6))


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
