"""A pretoken of any length is encoded like the whole for every window size, and little of it is buffered."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bpe import reference
from bpe.errors import InvalidText
from bpe.tokenizer import Tokenizer

# Runs of one kind, and runs decided late: spaces after a line break, capitals after a letter without case.
KINDS = [
    *("a", "B", "字", "\u0301", "7", "!", "\0", " ", "\n", "\u3000", "ǅ", "ʰ"),
    *("ab", "the", "aB", "字B", "字b", "!\u0301", "!\n", "/\n", " \n", "\r\n", "!'", "a'", "a's", "\t "),
    *("aBc字", "B\u0301", "!/", "12", "e\u0301", "ab cd"),
]


def cut_up(text: str, rng: random.Random, longest: int) -> Iterator[bytes]:
    place = 0
    while place < len(text):
        stop = place + rng.randrange(1, longest + 1)
        yield text[place:stop].encode()
        place = stop


def nasty_runs(rng: random.Random, count: int) -> Iterator[str]:
    for _ in range(count):
        parts = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            kind = rng.choice(KINDS)
            size = rng.choice([1, 2, 30, 150, 400])
            parts.append(
                "".join(rng.choices(kind, k=size)) if rng.random() < 0.5 else kind * (size // len(kind) + 1)
            )
        yield (
            rng.choice(["", " ", "\n", "!", "x "])
            + "".join(parts)
            + rng.choice(["", "", "x", "b", "\n", "'s", " y"])
        )


@pytest.mark.parametrize("try_bytes", [1, 40, 100])
def test_runs_have_the_ids_of_the_whole(
    pattern: str, try_bytes: int, listed: Callable[..., Tokenizer]
) -> None:
    tokenizer = listed(pattern, special_tokens=["<|end|>", "<|", "'''"])
    rng = random.Random(f"{pattern} {try_bytes}")
    for text in nasty_runs(rng, 150):
        if rng.random() < 0.2:
            place = rng.randrange(len(text) + 1)
            text = text[:place] + rng.choice(["<|end|>", "<|", "'''"]) + text[place:]
        pieces = cut_up(text, rng, rng.choice([1, 7, 60]))
        found = [part.tolist() for part in tokenizer.encode_blocks(pieces, "all", try_bytes)]
        assert list(itertools.chain(*found)) == tokenizer.encode(text), repr(text)


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
        entries += [bytes([byte]) for byte in range(256) if bytes([byte]) not in entries]
        vocab = dict(enumerate(entries))
        id_of = {entry: id_ for id_, entry in vocab.items()}
        ranks = None if rule == "ranks" else {pair: rank for rank, pair in enumerate(merges)}
        whole = rule != "merges"
        tokenizer = Tokenizer(vocab, None if rule == "ranks" else merges, ignore_merges=whole)
        for _ in range(6):
            unit = "".join(rng.choices("abc", k=rng.choice([1, 1, 2, 3, 20])))
            text = "".join(
                rng.choices([unit, "a", "b", "c"], weights=[9, 1, 1, 1], k=rng.choice([9, 60, 300]))
            )[:400]
            expected = reference.encode_pretoken(text.encode(), id_of, ranks, whole)
            min_bytes = rng.choice([1, 20, 60])
            try:
                got = [*tokenizer.encode_blocks(cut_up(text, rng, 99), "all", min_bytes)]
            except InvalidText:  # windows share no boundary: never wrong IDs
                refused += 1
                continue
            assert np.concatenate(got).tolist() == expected, (text, merges)
            joined += len(got) > 2
    assert joined > 50
    assert refused < 20


@pytest.mark.parametrize("peer", ["tiktoken", "tokenizers"])
def test_runs_have_the_ids_of_the_peers(
    peer: str, pattern: str, listed: Any, ranked: Any, tiktoken_of: Any, huggingface_of: Any
) -> None:
    tokenizer = ranked(pattern) if peer == "tiktoken" else listed(pattern)
    other = tiktoken_of(tokenizer) if peer == "tiktoken" else huggingface_of(tokenizer)
    rng = random.Random(f"{peer} {pattern}")
    for text in nasty_runs(rng, 60):
        expected = other.encode_ordinary(text) if peer == "tiktoken" else other.encode(text).ids
        found = tokenizer.encode_blocks(cut_up(text, rng, 60), "all", 50)
        assert [id_ for part in found for id_ in part.tolist()] == expected, repr(text)


@pytest.mark.parametrize(
    "unit",
    ["a", "B", "字", " ", "\n", "\0", "7", "!", "\u0301", "the", "\n ", "a'", "字b", "aB", "12", "!\n"],
)
@pytest.mark.parametrize("begin", ["", "\n", "字", " ", "!"])
def test_little_is_held(begin: str, unit: str, pattern: str, listed: Any) -> None:
    """One pretoken of 60,000 characters is encoded as it arrives, unless its start depends on its end."""
    tokenizer = listed(pattern)
    text = begin + unit * (60_000 // len(unit)) + "x"
    pieces = cut_up(text, random.Random(1), 1500)
    parts = [part.copy() for part in tokenizer.encode_blocks(pieces, "all", 1000)]
    assert np.concatenate(parts).tolist() == tokenizer.encode(text)
    starts_late = begin + unit == "\n " or (begin + unit == "字B" and pattern == "o200k")
    assert starts_late or max(map(len, parts)) < 20_000


def test_normalized_runs_have_the_ids_of_the_whole(listed: Any) -> None:
    tokenizer = listed("qwen2", special_tokens=["<|end|>", "e\u0301e"], normalizer="NFC")
    rng = random.Random("nfc")
    kinds = [
        "e\u0301",
        "a\u0323\u0301",
        "\u0301",
        "\u1100\u1161\u11a8",
        "é",
        "字",
        "\u0344",
        "e",
        " \u0301",
        "<|end|>",
    ]
    for _ in range(200):
        text = "".join(rng.choice(kinds) * rng.choice([1, 1, 2, 60]) for _ in range(rng.choice([1, 2, 5])))
        pieces = cut_up(text, rng, rng.choice([1, 7, 60]))
        found = [part.tolist() for part in tokenizer.encode_blocks(pieces, "all", rng.choice([1, 40]))]
        assert list(itertools.chain(*found)) == tokenizer.encode(text), repr(text)
