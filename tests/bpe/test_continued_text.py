"""Continued training of a tokenizer with text entries: equal to the reference, and encoded like tokenizers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from bpe import Tokenizer, reference, train
from bpe.pretoken_counts.counting import count_pretokens
from bpe.vocabulary import BYTE_ENTRIES, TextRules
from tests.bpe.text_vocabularies import NAMES, WORDS, text_vocabulary


def text_of(seed: int, words: int = 60) -> str:
    """Return words known to the vocabularies, and characters and bytes unknown to them."""
    rng = random.Random(seed)
    return " ".join(
        rng.choices([*WORDS, "th\u65e5qu\u00e8re", "new\U0001f600newer", "</w>", "##the"], k=words)
    )


@pytest.mark.filterwarnings("ignore:.*no entries for the bytes")
@pytest.mark.parametrize("name", NAMES)
def test_old_entries_stay_and_new_merges_follow(name: str, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(text_vocabulary(name))
    old = Tokenizer.load(tmp_path / "old.json")
    text, tie_break = text_of(1), random.Random(name).choice(["lexicographic", "huggingface"])
    new = train(
        [text.encode()],
        old.vocab_size + 21,
        ["<new>"],
        tie_break=tie_break,
        continue_from=tmp_path / "old.json",
        max_token_length=6,
    )
    assert {id_: new.vocab[id_] for id_ in old.vocab} == dict(old.vocab)
    assert new.merges[: len(old.merges)] == old.merges
    assert new.special_tokens == old.special_tokens | {"<new>": old.max_token_id + 1}
    if TextRules.of_text(old.text_rules):
        counts = count_pretokens(
            [text.encode()], list(old.special_tokens), old.pretokenizer, normalizer=old.parts.normalizer
        )
        assert new.merges[len(old.merges) :] == reference.train(
            counts.as_dict(),
            20,
            tie_break,
            first_entries=[old.vocab[id_] for id_ in sorted(old.vocab)],
            first_merges=old.merges,
            ignore_merges=old.ignore_merges,
            reserved=[*(token.encode() for token in old.special_tokens), *BYTE_ENTRIES],
            text_rules=old.text_rules,
            max_token_letters=5,
        )
    new.save(tmp_path / "new.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "new.json"))
    for each in (text, text_of(2, 300), "\U0001f600 <unk> a</w> ##b <new>"):
        ids = list(new.encode(each, allowed_special="all"))
        assert ids == theirs.encode(each, add_special_tokens=False).ids
        assert new.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("like", ["llama-2", "gemma-3", "clip"])
def test_on_the_same_text_it_is_the_longer_training(like: str) -> None:
    text = text_of(3, 400).encode()
    options: dict[str, Any] = {"special_tokens": ["<unk>"], "tie_break": "huggingface"}
    smaller = train([text], 600, like=like, **options)
    assert train([text], 640, tie_break="huggingface", continue_from=smaller) == train(
        [text], 640, like=like, **options
    )


def test_text_never_becomes_a_byte_entry_or_the_unknown_token() -> None:
    """The vocabulary has one byte entry; the text spells another one."""
    entries = [b"<unk>", b"<0x41>", *(letter.encode() for letter in "<0x4>Dunk")]
    rules = TextRules(byte_fallback=True, unk_token="<unk>", fuse_unk=True)
    old = Tokenizer(dict(enumerate(entries)), [], text_rules=rules)
    new = train([b"<0x4D> <unk>" * 9], 40, continue_from=old)
    assert b"<0x4D>" not in new.vocab.values()
    assert [entry for entry in new.vocab.values() if b"<unk>" in entry] == [b"<unk>"]


def test_a_sentencepiece_model_is_gone_on_from(tmp_path: Path) -> None:
    text = text_of(4, 300)
    first = train([text.encode()], 420, ["<unk>", "<s>", "</s>"], like="llama-2")
    first.export_sentencepiece(tmp_path / "old.model")
    old = Tokenizer.load(tmp_path / "old.model")
    new = train([text.encode()], old.vocab_size + 30, continue_from=tmp_path / "old.model")
    assert {id_: new.vocab[id_] for id_ in old.vocab} == dict(old.vocab)
    assert (new.vocab_size, len(new.merges)) == (old.vocab_size + 30, len(old.merges) + 30)
    same = tokenizers.Tokenizer.from_str(new.canonical_json.decode())
    assert same.encode(text, add_special_tokens=False).ids == list(new.encode(text))
    new.export_sentencepiece(tmp_path / "new.model")
    assert Tokenizer.load(tmp_path / "new.model").encode(text) == new.encode(text)
