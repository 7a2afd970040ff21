"""Odd tokenizers: what once differed from tokenizers, each by itself, and files and encodings drawn by seeds."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from compared import assert_same
from odd_calls_compared import difference as difference_of_calls
from odd_encodings_compared import difference as difference_to_tiktoken
from odd_files_compared import difference

import bpe
from bpe.compat.huggingface import AddedToken, Tokenizer
from bpe.compat.huggingface import pre_tokenizers as huggingface_components
from bpe.errors import BadTokenizer
from bpe.formats import huggingface
from bpe.formats.byte_alphabet import BYTE_TO_CHARACTER
from bpe.pretokenization.components import WhitespaceSplit
from bpe.pretokenizer import Pretokenizer
from bpe.vocabulary import TextRules

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTES = {character: id_ for id_, character in enumerate(BYTE_TO_CHARACTER.values())}


def token(content: str, id_: int, **flags: bool) -> dict[str, Any]:
    no = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": id_, "content": content, **no, **flags}


def file_of(vocab: dict[str, int], *added: dict[str, Any], components: Any = (), **model: Any) -> str:
    root = {"version": "1.0", "added_tokens": list(added), **dict(components)}
    return json.dumps(root | {"model": {"type": "BPE", "vocab": vocab, "merges": [], **model}})


def both_of(text: str) -> tuple[Tokenizer, tokenizers.Tokenizer]:
    return Tokenizer.from_str(text), tokenizers.Tokenizer.from_str(text)


def test_a_token_within_the_whitespace_that_another_took() -> None:
    """A batch of texts ended with an IndexError; what followed had the place of another character."""
    components = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL}
    ours, theirs = both_of(file_of(BYTES, token("\n", 256, rstrip=True), components=components))
    for text in ("s\n\n\\_é", "\n \n\n x", "é\n\n", "\n\u3000\n\té\n"):
        assert_same(ours.encode(text), theirs.encode(text), text)


@pytest.mark.parametrize("fuse_unk", [True, False])
def test_an_unknown_character_before_byte_entries(fuse_unk: bool) -> None:
    """The unknown token waits behind them, and its bytes are counted where it stands."""
    vocab = {"?": 0, "a": 1, "<0xC3>": 2, "<0x9F>": 3}
    rules = {"unk_token": "?", "byte_fallback": True, "fuse_unk": fuse_unk}
    ours, theirs = both_of(file_of(vocab, **rules))
    for text in ("xßya", "xxß", "ßx", "a\u3000ßyßa", "中ß中ßa"):
        assert_same(ours.encode(text), theirs.encode(text), text)


def test_special_tokens_are_left_out_by_their_normalized_texts() -> None:
    """Decoding left out "_a", the normalized text of the special token "a" that has an entry's id."""
    prepend = {"normalizer": {"type": "Prepend", "prepend": "_"}}
    added = token("a", 0, special=True, normalized=True)
    ours, theirs = both_of(file_of({"a": 0, "b": 1}, added, components=prepend))
    assert ours.decode([0, 1]) == theirs.decode([0, 1]) == "_a b"


def test_special_tokens_that_are_text_hide_what_begins_within_them() -> None:
    """Of "<x>", taken for text, "x>" was a token."""
    letters = {letter: id_ for id_, letter in enumerate("<xs> \n")}
    added = [
        token("<x>", 6, special=True, rstrip=True),
        token("x>", 7),
        token("s", 8, lstrip=True),
        token(" ", 4, special=True),
    ]
    ours, theirs = both_of(file_of(letters, *added))
    ours.encode_special_tokens = theirs.encode_special_tokens = True
    for text in ("<x>x>", "<<x> x>s", "x>  \n s<x>  s", "<x>s"):
        assert_same(ours.encode(text), theirs.encode(text), text)
        assert ours.encode_batch([text])[0].ids == theirs.encode(text).ids


TEXT = {"a": 0, "b": 1, "?": 2, "b$": 3, "<0x78>": 4}


@pytest.mark.parametrize(
    "model",
    [{"unk_token": "?", "fuse_unk": True}, {"end_of_word_suffix": "$"}, {"byte_fallback": True}],
    ids=str,
)
def test_of_a_tokenizer_whose_entries_are_text(model: dict[str, Any]) -> None:
    """What the model says of unknown characters was lost on the way."""
    text = file_of(TEXT, token("<s>", 5, special=True), **model)
    core = bpe.Tokenizer.from_parts(huggingface.read(text.encode()))
    made = Tokenizer.from_tokenizer(core)
    theirs = tokenizers.Tokenizer.from_str(made.to_str())
    for each in ("axb", "xx<s>b", "ab"):
        assert_same(Tokenizer.from_str(text).encode(each), made.encode(each), each)
        assert_same(made.encode(each), theirs.encode(each), each)


@pytest.mark.parametrize(
    ("content", "model"),
    [
        ("x", {}),
        ("x$", {"end_of_word_suffix": "$"}),
        ("<0x79>", {"byte_fallback": True}),
        ("xy", {"ignore_merges": True}),
    ],
)
def test_an_added_token_is_no_entry_of_what_is_saved(content: str, model: Any, tmp_path: Path) -> None:
    """Where it is not a word by itself, and so no token, it was an entry that the text lacked."""
    path = str(tmp_path / "tokenizer.json")
    text = file_of(TEXT, token(content, 5, single_word=True), token("<s>", 6), **model)
    Path(path).write_text(text, encoding="utf-8")
    tokenizer = bpe.Tokenizer.load(path)
    tokenizer.save(path)
    saved = tokenizers.Tokenizer.from_file(path)
    for each in ("axb", "axyb", "xy", "x", "y", "ax$", "<s>x"):
        wanted = tokenizers.Tokenizer.from_str(text).encode(each).ids
        assert saved.encode(each).ids == bpe.Tokenizer.load(path).encode(each) == wanted, each


def test_an_added_token_that_no_file_can_hold() -> None:
    """It must not be in model.vocab, and outside of it ids are counted from the last entry's."""
    vocab = {0: b"a", 3: b"b"}
    words = Pretokenizer((WhitespaceSplit(),))
    made = bpe.Tokenizer(
        vocab, [], [bpe.AddedToken("x", 1)], words, text_rules=TextRules(), ignore_merges=False
    )
    with pytest.raises(BadTokenizer, match="added token 'x'"):
        huggingface.to_json(made)


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_drawn_files(first: int) -> None:
    """All that can be asked of an interface, of files that nobody would write."""
    outcomes = {seed: difference(seed) for seed in range(first, first + 8)}
    different = {seed: outcome.what for seed, outcome in outcomes.items() if outcome.kind == "different"}
    assert not different
    assert Counter(outcome.kind for outcome in outcomes.values())["same"] >= 6


def test_drawn_calls() -> None:
    """Tokenizers and encodings that change between the calls."""
    outcomes = {seed: difference_of_calls(seed) for seed in range(16)}
    assert not {seed: outcome.what for seed, outcome in outcomes.items() if outcome.kind == "different"}
    assert Counter(outcome.kind for outcome in outcomes.values())["same"] >= 6


def test_drawn_encodings() -> None:
    outcomes = {seed: difference_to_tiktoken(seed) for seed in range(30)}
    assert not {seed: outcome.what for seed, outcome in outcomes.items() if outcome.kind != "same"}


def test_an_unknown_token_that_is_an_added_token() -> None:
    """Its text was empty where the model gave it, and offsets behind it were wrong."""
    ours, theirs = both_of(file_of(TEXT, token("?", 2, special=True), unk_token="?"))
    for text in ("axb", "xxb", "a?xb", "ax🏽yb"):
        assert_same(ours.encode(text), theirs.encode(text), text)


def test_texts_that_become_byte_level() -> None:
    """A ByteLevel that cuts nothing was taken for none: characters were encoded, not the bytes' letters."""
    letters = {"<unk>": 0, "a": 1, "b": 2, "ab": 3} | {f"<0x{byte:02X}>": 4 + byte for byte in range(256)}
    for byte_fallback in (True, False):
        ours, theirs = both_of(file_of(letters, unk_token="<unk>", byte_fallback=byte_fallback))
        ours.pre_tokenizer = huggingface_components.ByteLevel(False, use_regex=False)
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(False, use_regex=False)
        for text in ("abé\n", "中a", "b b"):
            assert_same(ours.encode(text), theirs.encode(text), text)
        assert ours.encode_batch(["abé\n"])[0].ids == theirs.encode("abé\n").ids


def test_copies_take_special_tokens_for_text_as_before() -> None:
    """tokenizers forgets it."""
    ours, _ = both_of(
        file_of(BYTES, token("<s>", 256, special=True), components={"pre_tokenizer": BYTE_LEVEL})
    )
    ours.encode_special_tokens = True
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert again.encode("<s>").ids == ours.encode("<s>").ids != [256]


def test_a_token_that_was_special_once() -> None:
    """It is left out of decoding until the tokenizer is copied, which looks at what tokens are now."""
    ours, theirs = both_of(file_of(BYTES, components={"pre_tokenizer": BYTE_LEVEL}))
    for made, tokenizer in ((AddedToken, ours), (tokenizers.AddedToken, theirs)):
        tokenizer.add_special_tokens(["<x>"])
        tokenizer.add_tokens([made("<x>", normalized=False)])
    id_ = len(BYTES)
    assert ours.decode([id_, 66]) == theirs.decode([id_, 66])
    copies = copy.deepcopy(ours), copy.deepcopy(theirs)
    assert copies[0].decode([id_, 66]) == copies[1].decode([id_, 66])
    for each in copies:
        each.encode_special_tokens = True
    assert_same(*(each.encode("a<x>") for each in copies))
