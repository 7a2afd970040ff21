"""GPT-2's vocab.json and merges.txt: round trips, results of other readers, and every error."""

from __future__ import annotations

import json
import re

import pytest

from bpe.errors import BadTokenizer, UnsupportedTokenizer
from bpe.formats.gpt2 import read_merges
from bpe.tokenizer import Tokenizer


@pytest.fixture
def folder(listed, tmp_path):
    listed().export_gpt2(tmp_path / "gpt2")
    return tmp_path / "gpt2"


def change(folder, **entries):
    vocab = json.loads((folder / "vocab.json").read_bytes())
    vocab.update(entries)
    (folder / "vocab.json").write_text(
        json.dumps({key: id_ for key, id_ in vocab.items() if id_ is not None})
    )


def test_round_trip_by_every_path(folder, listed):
    for path in (folder, folder / "vocab.json", folder / "merges.txt", str(folder)):
        assert Tokenizer.load(path) == listed()


def test_a_prefix_of_the_names(folder, listed):
    for name in ("vocab.json", "merges.txt"):
        (folder / name).rename(folder / f"gpt2-{name}")
    assert Tokenizer.load(folder / "gpt2-merges.txt") == listed()


def test_pattern_and_special_tokens_are_given(listed, tmp_path):
    listed("llama3", special_tokens=["<s>", "[x]"]).export_gpt2(tmp_path)
    assert Tokenizer.load(tmp_path).special_tokens == {"<s>": 556}
    again = Tokenizer.load(tmp_path, pattern="llama3", special_tokens=["<s>", "[x]", "<new>"])
    assert again.special_tokens == {"<s>": 556, "[x]": 557, "<new>": 558}
    assert again.pattern == "llama3"
    assert Tokenizer.load(tmp_path, special_tokens={"<s>": 556}).special_tokens == {"<s>": 556}


def test_new_special_tokens_follow_the_highest_id(folder, listed):
    """IDs may have gaps, so the entry count is not the next ID; existing tokens keep their IDs."""
    change(folder, **{"<far>": 9000})
    again = Tokenizer.load(folder, special_tokens=["<new>", "<far>", "<|endoftext|>", "<newer>"])
    specials = {**listed().special_tokens, "<new>": 9001, "<far>": 9000, "<newer>": 9002}
    assert again.special_tokens == {text: specials[text] for text in again.special_tokens}
    assert set(again.special_tokens) == {"<new>", "<far>", "<|endoftext|>", "<newer>"}


def test_hugging_face_reads_it(folder, listed, nasty_texts):
    from tokenizers import Tokenizer as Theirs
    from tokenizers import models, pre_tokenizers

    theirs = Theirs(models.BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in nasty_texts.values():
        assert theirs.encode(text).ids == listed().encode(text, allowed_special=())


def test_a_tokenizer_json_in_the_folder_comes_first(folder, listed):
    listed("llama3").save(folder / "tokenizer.json")
    assert Tokenizer.load(folder).pattern == "llama3"


def test_merges_may_begin_with_a_hash_and_end_with_cr():
    assert read_merges("#version: 0.2\r\n# #\r\nĠ t\r\n\r\n".encode()) == [(b"#", b"#"), (b" ", b"t")]
    assert read_merges(b"") == []
    assert read_merges(b"a b") == [(b"a", b"b")]


BAD_MERGES = {
    "one part": (b"a b\nab\n", "line 2: "),
    "three parts": (b"a b c\n", "line 1: "),
    "two spaces": (b"a  b\n", "line 1: "),
    "outside the alphabet": ("▁ a\n".encode(), "line 1: "),
    "not UTF-8": (b"a \xff\n", "byte 2: "),
    "unknown entry": (b"zzz b\n", "merges[0]: "),
}


@pytest.mark.parametrize("name", BAD_MERGES)
def test_bad_merges(name, folder):
    data, message = BAD_MERGES[name]
    (folder / "merges.txt").write_bytes(data)
    with pytest.raises(BadTokenizer, match=re.escape(message)) as caught:
        Tokenizer.load(folder)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)


def test_bad_vocabularies(folder):
    change(folder, a=None)
    with pytest.raises(BadTokenizer):
        Tokenizer.load(folder)
    change(folder, a=98)
    with pytest.raises(BadTokenizer, match="entry 'a': .*98"):
        Tokenizer.load(folder)
    change(folder, a="x")
    with pytest.raises(BadTokenizer):
        Tokenizer.load(folder)
    change(folder, a=97, **{"a b": 900})
    tokenizer = Tokenizer.load(folder)
    assert (tokenizer.decode([97, 900]), 900 in tokenizer.encode("a b a")) == ("aa b", False)
    (folder / "vocab.json").write_text("[1]")
    with pytest.raises(BadTokenizer, match="vocab.json"):
        Tokenizer.load(folder)
    (folder / "merges.txt").unlink()
    with pytest.raises(BadTokenizer, match="vocab.json.*merges.txt"):
        Tokenizer.load(folder)


def test_inexpressible_tokenizers_are_not_written(listed, ranked, tmp_path):
    with pytest.raises(UnsupportedTokenizer):
        listed(normalizer="NFC").export_gpt2(tmp_path)
    with pytest.raises(UnsupportedTokenizer):
        ranked().export_gpt2(tmp_path)
    listed(ignore_merges=True).export_gpt2(tmp_path)  # merges reach every entry: no difference
    assert Tokenizer.load(tmp_path) == listed()
