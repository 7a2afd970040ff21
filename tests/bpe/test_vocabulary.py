"""Validation of vocabularies, one line for each fault, and the assignment of IDs to special tokens."""

from __future__ import annotations

import re

import pytest

from bpe.errors import BadTokenizer
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import every_split

BYTES = {byte: bytes([byte]) for byte in range(256)}
AB = BYTES | {256: b"ab", 257: b"abc"}
MERGES = [(b"a", b"b"), (b"ab", b"c")]


def without(*ids):
    return {id_: entry for id_, entry in AB.items() if id_ not in ids}


BAD = {
    "no entries": ({}, [], None, "vocab: 256 of the 256 bytes"),
    "bytes missing": (without(65, 66), [], None, "vocab: 2 of the 256 bytes"),
    "duplicate bytes": (
        AB | {300: b"ab"},
        [],
        None,
        "vocab[256]: same bytes as vocab[300]",
    ),
    "negative id": (
        AB | {-1: b"x1"},
        [],
        None,
        "entry b'x1': ",
    ),
    "id past the end": (
        AB | {2**31: b"x1"},
        [],
        None,
        "entry b'x1': ",
    ),
    "id no integer": (AB | {True: b"x1"}, [], None, "entry b'x1': ")
    and (AB | {1.5: b"x1"}, [], None, "entry b'x1': "),
    "two empty entries": (AB | {300: b"", 301: b""}, [], None, "vocab: "),
    "entry no bytes": (AB | {300: "x1"}, [], None, "vocab[300]: "),
    "merge of unknown": (AB, [*MERGES, (b"a", b"zz")], None, "merges[2]: "),
    "merge makes unknown": (
        AB,
        [*MERGES, (b"a", b"z")],
        None,
        "merges[2]: ",
    ),
    "duplicate merge": (AB, [*MERGES, MERGES[0]], None, "merges[2]: same as merges[0]"),
    "merge of a special token": (
        AB | {300: b"<s>"},
        [(b"<s>", b"a")],
        ["<s>"],
        "merges[0]: ",
    ),
    "special token empty": (AB, MERGES, [""], "special_tokens: "),
    "special token twice": (AB, MERGES, ["<s>", "<s>"], "special_tokens: "),
    "special token no text": (AB, MERGES, [b"<s>"], "special_tokens: "),
    "special tokens no list": (
        AB,
        MERGES,
        "<s>",
        "special_tokens: ",
    ),
    "special token with a surrogate": (
        AB,
        MERGES,
        ["\ud800"],
        "special_tokens: character 0 ",
    ),
    "special ids equal": (
        AB,
        MERGES,
        {"<s>": 300, "<t>": 300},
        "special_tokens: '<s>' and '<t>' ",
    ),
    "special id taken": (
        AB,
        MERGES,
        {"<s>": 256},
        "special_tokens: ID 256 ",
    ),
    "special id negative": (AB, MERGES, {"<s>": -2}, "entry b'<s>': "),
    "special id too high": (AB, MERGES, {"<s>": 2**31}, "entry b'<s>': "),
    "no ids left": (AB | {2**31 - 1: b"x1"}, MERGES, ["<s>"], "special_tokens: "),
    "special token ambiguous": (
        AB | {300: b"<s>", 301: b"<s>"},
        MERGES,
        ["<s>"],
        "special_tokens: '<s>' ",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_faults_are_named(name):
    vocab, merges, special_tokens, message = BAD[name]
    with pytest.raises(BadTokenizer, match=re.escape(message)) as caught:
        Tokenizer(vocab, merges, special_tokens)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_special_tokens_take_their_entry_or_the_next_ids():
    tokenizer = Tokenizer(AB | {400: b"<t>"}, MERGES, ["<s>", "<t>", "<u>"])
    assert tokenizer.special_tokens == {"<s>": 401, "<t>": 400, "<u>": 402}
    assert tokenizer.vocab == AB | {400: b"<t>", 401: b"<s>", 402: b"<u>"}
    assert tokenizer.ordinary_entries == AB


def test_special_tokens_that_plain_text_needs_are_ordinary_too():
    tokenizer = Tokenizer(AB | {300: b"<s>"}, MERGES, ["a", "ab", "<s>"])
    assert tokenizer.special_tokens == {"a": 97, "ab": 256, "<s>": 300}
    assert tokenizer.ordinary_entries == AB


def test_a_special_token_may_have_the_bytes_of_another_entry():
    tokenizer = Tokenizer(AB, MERGES, {"ab": 500, "\n": 501})
    assert tokenizer.ordinary_entries == AB
    assert tokenizer.vocab[500] == b"ab"


@pytest.mark.parametrize("id_", [0, 2**31 - 1])
def test_ids_may_have_gaps_and_reach_the_last(id_):
    moved = {byte + 1000: entry for byte, entry in BYTES.items()} | {id_: b"ab"}
    assert Tokenizer(moved, [(b"a", b"b")]).ordinary_entries[id_] == b"ab"


def test_ignore_merges_default():
    assert Tokenizer(AB, None).ignore_merges
    assert not Tokenizer(AB, MERGES).ignore_merges
    assert Tokenizer(AB, MERGES, ignore_merges=True).ignore_merges


def test_every_split():
    entries = AB | {258: b"bc", 259: b"abcd"}
    assert every_split(entries) == [
        (b"a", b"b"),
        (b"a", b"bc"),
        (b"ab", b"c"),
        (b"b", b"c"),
        (b"abc", b"d"),
    ]
    assert Tokenizer(entries, None).merges == every_split(entries)
    assert Tokenizer(AB, MERGES).merges == MERGES
