"""Chinese, kana and the characters between them, scanned by character: IDs equal the reference for every pattern,
rule and variant.
"""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from chinese_texts import LETTERS, WORDS, text_of
from pretoken_ends import automaton_of, pretoken_ends

from bpe import _core
from bpe.patterns import PATTERNS
from bpe.reference import encode
from bpe.training import train

SEPARATOR = b"<|endoftext|>"
KINDS = ["trained", "with parts", "with unreachable pairs", "with unreachable characters", "with large ids"]


@cache
def trained() -> list[tuple[bytes, bytes]]:
    """Return merges trained on such text."""
    return train([text_of(random.Random(1), 9000).encode()], 256 + 500).merges


@cache
def vocabulary(kind: str) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Return those merges, optionally with more merges and entries that no merges make."""
    merges = [*trained()]
    entries = dict.fromkeys(
        [*(bytes([value]) for value in range(256)), *(left + right for left, right in merges)]
    )

    def add(left: bytes, right: bytes) -> None:
        if left in entries and right in entries and left + right not in entries:
            merges.append((left, right))
            entries[left + right] = None

    add("，".encode(), "天".encode())
    add("。".encode(), b"\n")
    if kind == "with parts":  # parts of a character, joined to the one before or after it
        for letter, other in [*zip(WORDS, LETTERS[4:], strict=False), ("。", "天"), ("人", "，")]:
            left, right = letter.encode(), other.encode()
            add(left, right[:1])
            add(left + right[:1], right[1:])
            add(left[2:], right[:1])
            add(left[2:] + right[:1], right[1:])
            add(left[1:], right)
    new = {  # not entries yet
        "with unreachable pairs": [a + b for a in LETTERS + "，。" for b in LETTERS + "，"]
        + ["龍鳳麟", "…。"],
        "with unreachable characters": ["\u2030", "\u2031", "雪山", *LETTERS],
    }.get(kind, [])
    ids = dict(enumerate(entries))
    if kind == "with large ids":  # for character pairs; the table of characters stores 21 bits
        pairs = [entry for entry in entries if len(entry) == 6 and len(entry.decode(errors="ignore")) == 2]
        assert len(pairs) > 3
        ids = dict(enumerate(entry for entry in entries if entry not in pairs))
        ids |= dict(enumerate(pairs, start=2**21 - 2))
    return ids | {
        5000 + i: text.encode() for i, text in enumerate(new) if text.encode() not in entries
    }, merges


@cache
def texts_and_ids(kind: str, rule: str, pattern: str) -> tuple[list[str], list[list[int]]]:
    """Return texts and the reference IDs, which every variant must produce."""
    entries, merges = vocabulary(kind)
    rng = random.Random(f"{kind} {rule} {pattern}")
    texts = [text_of(rng, size) for size in [1, 2, 3, 15, 16, 17, 40, 40, 80, 80, 300, 300]]
    texts += [
        "".join(pair) + end
        for pair in [("天", "，"), ("，", "天"), ("麟", "書"), ("…", "。")]
        for end in ["", "\n", "a"]
    ]
    listed = None if rule == "ranks" else merges
    return texts, [encode(text, entries, listed, {}, pattern, rule != "merges") for text in texts]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("rule", ["merges", "merges whole", "ranks"])
@pytest.mark.parametrize("kind", KINDS)
def test_texts_equal_the_reference(variant: str, kind: str, rule: str, pattern: str) -> None:
    entries, merges = vocabulary(kind)
    listed = None if rule == "ranks" else merges
    encoder = _core.EntryFile.from_entries(entries, listed).encoder(
        {}, automaton_of(pattern), rule != "merges"
    )
    texts, expected = texts_and_ids(kind, rule, pattern)
    tokens, offsets = encoder.encode_documents(SEPARATOR.join(text.encode() for text in texts), SEPARATOR, 1)
    for i, text in enumerate(texts):
        assert tokens[offsets[i] : offsets[i + 1]].tolist() == expected[i], repr(text)
        assert encoder.encode(text) == expected[i]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    "line", ["龍鳳", "天地", "龍，", "龍鳳麟書あいカー한龍鳳麟書あいカー한\n", "，，", "\u3000龍"]
)
def test_long_runs_equal_their_pretokens(variant: str, pattern: str, line: str) -> None:
    """More IDs than the scan's buffer holds, and one pretoken of that length."""
    entries, merges = vocabulary("with parts")
    text = (line * 3000).encode()
    with_pattern = _core.EntryFile.from_entries(entries, merges).encoder({}, automaton_of(pattern), False)
    given = _core.EntryFile.from_entries(entries, merges).encoder({}, None, False)
    ends = pretoken_ends(text, pattern)
    assert np.array_equal(
        with_pattern.encode_documents(text, SEPARATOR, 1)[0], given.encode_pretokens(text, ends)
    )


@pytest.mark.parametrize("kind", ["trained", "with parts"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_pieces_of_any_length_between(variant: str, pattern: str, kind: str) -> None:
    """A scan that starts after another meets pieces longer than its first lookahead, and than a window."""
    entries, merges = vocabulary(kind)
    with_pattern = _core.EntryFile.from_entries(entries, merges).encoder({}, automaton_of(pattern), False)
    given = _core.EntryFile.from_entries(entries, merges).encoder({}, None, False)
    rng = random.Random(f"{pattern} {kind}")
    for _ in range(25):
        text = ""
        while len(text) < 3000:
            text += text_of(rng, rng.choice([1, 4, 30, 100]))
            run = rng.choice(
                [*LETTERS, "，", "。", "…", "\u3000", "\u3099", "a", "é", "😀", "'", "7", " ", "\n"]
            )
            text += run * rng.choice([1, 2, 20, 60, 90, 300, 1500])
        data = text.encode()
        made = with_pattern.encode_documents(data, SEPARATOR, 1)[0]
        assert np.array_equal(made, given.encode_pretokens(data, pretoken_ends(data, pattern)))


def test_a_text_may_end_anywhere(variant: str) -> None:
    """No byte after the end is read: each text ends its buffer, and other text follows."""
    entries, merges = vocabulary("trained")
    encoder = _core.EntryFile.from_entries(entries, merges).encoder({}, automaton_of("cl100k"), False)
    text = "天地人和龍鳳麟書あいカー한天地人和，龍鳳。\n"
    for size in range(1, len(text) + 1):
        alone = encoder.encode(text[:size])
        buffer = text[:size].encode() + SEPARATOR + text.encode()
        tokens, offsets = encoder.encode_documents(buffer, SEPARATOR, 1)
        assert tokens[: offsets[1]].tolist() == alone
        assert alone == encode(text[:size], entries, merges, {}, "cl100k", False)
