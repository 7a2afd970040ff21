"""Validation of vocabularies, one line for each fault, and the assignment of IDs to special tokens."""

from __future__ import annotations

import re

import pytest

from bpe.errors import BadTokenizer
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import TextRules

BYTES = {byte: bytes([byte]) for byte in range(256)}
AB = BYTES | {256: b"ab", 257: b"abc"}
MERGES = [(b"a", b"b"), (b"ab", b"c")]
TEXT = {0: b"<unk>", 1: b"a"}

# Arguments of Tokenizer -> start of the error, its location.
BAD = {
    "no entries": (({}, []), "vocab: 256 of the 256 bytes"),
    "bytes missing": (({id_: AB[id_] for id_ in AB if id_ not in (65, 66)}, []), "vocab: 2 of the 256 bytes"),
    "duplicate bytes": ((AB | {300: b"ab"}, []), "vocab[256]: same bytes as vocab[300]"),
    "id past the end": ((AB | {2**31: b"x1"}, []), "entry b'x1': "),
    "id no integer": ((AB | {1.5: b"x1"}, []), "entry b'x1': "),
    "two empty entries": ((AB | {300: b"", 301: b""}, []), "vocab: "),
    "entry no bytes": ((AB | {300: "x1"}, []), "vocab[300]: "),
    "merge of unknown": ((AB, [*MERGES, (b"a", b"zz")]), "merges[2]: "),
    "merge of texts": ((AB, [*MERGES, ("a", "b")]), "merges[2]: "),
    "duplicate merge": ((AB, [*MERGES, MERGES[0]]), "merges[2]: same as merges[0]"),
    "merge of a special token": ((AB | {300: b"<s>"}, [(b"<s>", b"a")], ["<s>"]), "merges[0]: "),
    "special token empty": ((AB, MERGES, [""]), "special_tokens: "),
    "special token twice": ((AB, MERGES, ["<s>", "<s>"]), "special_tokens: "),
    "special token with a surrogate": ((AB, MERGES, ["\ud800"]), "special_tokens: character 0 "),
    "special ids equal": ((AB, MERGES, {"<s>": 300, "<t>": 300}), "special_tokens: '<s>' and '<t>' "),
    "special id taken": ((AB, MERGES, {"<s>": 256}), "special_tokens: ID 256 "),
    "special id of the empty entry": ((AB | {300: b""}, MERGES, {"<s>": 300}), "special_tokens: ID 300 "),
    "no ids left": ((AB | {2**31 - 1: b"x1"}, MERGES, ["<s>"]), "special_tokens: "),
    "special token ambiguous": ((AB | {300: b"<s>", 301: b"<s>"}, MERGES, ["<s>"]), "special_tokens: '<s>' "),
    "entry no text": ((TEXT | {2: b"\xff"}, [], None, "gpt2", TextRules()), "vocab[2]: "),
    "unknown token missing": ((TEXT, [], None, "gpt2", TextRules(unk_token="<u>")), "unk_token: "),
    "byte entries next to affixes": (
        ({0: b"<0x78>", 1: b"a"}, [], None, "gpt2", TextRules(byte_fallback=True, end_of_word_suffix="xx")),
        "byte_fallback: ",
    ),
    "text without merges": ((TEXT, None, None, "gpt2", TextRules()), "text_rules: "),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_faults_are_named(name: str) -> None:
    (*arguments, last), message = BAD[name]
    rules = last if isinstance(last, TextRules) else None
    with pytest.raises(BadTokenizer, match=re.escape(message)) as caught:
        Tokenizer(*(arguments if rules else (*arguments, last)), text_rules=rules)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_special_tokens_take_their_entry_or_the_next_ids() -> None:
    tokenizer = Tokenizer(AB | {400: b"<t>"}, MERGES, ["<s>", "<t>", "<u>"])
    assert tokenizer.special_tokens == {"<s>": 401, "<t>": 400, "<u>": 402}
    assert tokenizer.vocab == AB | {400: b"<t>", 401: b"<s>", 402: b"<u>"}
    assert tokenizer.ordinary_entries == AB


@pytest.mark.parametrize("merges", [MERGES, None], ids=["merges", "ranks"])
def test_special_tokens_that_plain_text_needs_are_ordinary_too(
    merges: list[tuple[bytes, bytes]] | None,
) -> None:
    tokenizer = Tokenizer(AB | {300: b"<s>"}, merges, ["a", "ab", "<s>"])
    assert tokenizer.special_tokens == {"a": 97, "ab": 256, "<s>": 300}
    assert tokenizer.ordinary_entries == (AB if merges else BYTES | {257: b"abc"})


def test_a_special_token_may_have_the_bytes_of_another_entry() -> None:
    tokenizer = Tokenizer(AB, MERGES, {"ab": 500, "\n": 501})
    assert tokenizer.ordinary_entries == AB
    assert tokenizer.vocab[500] == b"ab"


@pytest.mark.parametrize("id_", [0, 2**31 - 1])
def test_ids_may_have_gaps_and_reach_the_last(id_: int) -> None:
    moved = {byte + 1000: entry for byte, entry in BYTES.items()} | {id_: b"ab"}
    assert Tokenizer(moved, [(b"a", b"b")]).ordinary_entries[id_] == b"ab"


def test_the_merges_of_a_rank_file_are_all_splits_of_its_entries() -> None:
    entries = AB | {258: b"bc", 259: b"abcd"}
    splits = [(b"a", b"b"), (b"a", b"bc"), (b"ab", b"c"), (b"b", b"c"), (b"abc", b"d")]
    assert Tokenizer(entries, None).merges == splits
    assert Tokenizer(AB, MERGES).merges == MERGES
