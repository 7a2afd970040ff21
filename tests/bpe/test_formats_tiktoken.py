"""Rank files: round trips, equal IDs in tiktoken, and every error."""

from __future__ import annotations

import re

import pytest

from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer
from bpe.formats.tiktoken import read, read_entries, to_ranks
from bpe.tokenizer import Tokenizer
from bpe.training import train
from bpe.vocabulary import every_split


def test_round_trip(ranked, pattern, tmp_path):
    tokenizer = ranked(pattern)
    path = tmp_path / "t.tiktoken"
    tokenizer.export_tiktoken(path)
    again = Tokenizer.load(path, pattern=pattern, special_tokens=tokenizer.special_tokens)
    assert again == tokenizer
    assert again.is_rank_file
    assert Tokenizer.load(path, pattern, ["<|endoftext|>"]) == tokenizer


def test_tiktoken_reads_it(ranked, tmp_path, nasty_texts, tiktoken_of):
    from tiktoken.load import load_tiktoken_bpe

    path = tmp_path / "t.tiktoken"
    ranked().export_tiktoken(path)
    ranks = load_tiktoken_bpe(str(path))
    assert ranks == {entry: id_ for id_, entry in ranked().ordinary_entries.items()}


def test_listed_merges_as_ranks_give_the_same_ids(listed, pattern, tmp_path, nasty_texts, random_texts):
    tokenizer = listed(pattern)
    tokenizer.export_tiktoken(tmp_path / "t.tiktoken")
    again = Tokenizer.load(tmp_path / "t.tiktoken", pattern, ["<|endoftext|>"])
    for text in [*nasty_texts.values(), *random_texts(seed=9, count=80, size=40)]:
        assert again.encode(text) == tokenizer.encode(text), repr(text)


def test_a_rank_file_that_went_through_json(ranked, tmp_path):
    ranked().save(tmp_path / "t.json")
    again = Tokenizer.load(tmp_path / "t.json")
    assert not again.is_rank_file
    assert to_ranks(again) == to_ranks(ranked())


def test_merges_that_ranks_can_not_express(trained):
    entries, merges = trained("gpt2")
    with pytest.raises(BadTokenizer, match="entry 900"):
        to_ranks(Tokenizer(entries | {900: b"xyzzy"}, merges))
    last = max(entries)
    entries[900], entries[901] = entries.pop(last), entries.pop(last - 1)
    with pytest.raises(BadTokenizer, match=r"merges\[\d+\]: "):
        to_ranks(Tokenizer(entries, merges))
    entries = trained("gpt2")[0] | {900: b"theth"}
    splits = every_split(entries)
    assert to_ranks(Tokenizer(entries, splits, ignore_merges=True)).endswith(b" 900\n")


BAD = {
    "no rank": (b"IQ==\n", "line 1: "),
    "three parts": (b"IQ== 0 1\n", "line 1: "),
    "no number": (b"IQ== x\n", "line 1: "),
    "negative": (b"IQ== -1\n", "line 1: "),
    "no base64": (b"IQ== 0\nI?== 1\n", "line 2: "),
    "rank twice": (b"IQ== 0\n\nIg== 0\n", "id 0 is that of both b'!' and b'\"'; ids must be unique"),
    "bytes twice": (None, "entries 0 and 300 are both b'\\x00'; the bytes of an entry must be its own"),
    "bytes missing": (b"IQ== 0\n", "the vocabulary lacks 255 of the 256 bytes"),
    "nothing": (b"", "the vocabulary lacks 256 of the 256 bytes"),
    "binary": (b"\x00\xff\x00", "line 1: "),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rank_files(name, ranked, tmp_path):
    data, message = BAD[name]
    path = tmp_path / "t.tiktoken"
    path.write_bytes(
        data if data is not None else to_ranks(ranked()) + b"AA== 300\n"[:9].replace(b"300", b"900")
    )
    message = message.replace("300", "900")
    with pytest.raises(BadTokenizer, match=re.escape(f"{path}: {message}")) as caught:
        Tokenizer.load(path, "gpt2")
    assert "\n" not in str(caught.value)


def test_a_last_line_without_end_and_cr():
    assert read_entries(b"IQ== 0\r\n\r\n\tIg==  1").find([b"!", b'"']) == [0, 1]


def test_arguments(ranked, listed, tmp_path):
    ranked().export_tiktoken(tmp_path / "t.tiktoken")
    with pytest.raises(BadArgument):
        Tokenizer.load(tmp_path / "t.tiktoken")
    with pytest.raises(BadTokenizer):
        Tokenizer.load(tmp_path / "t.tiktoken", "gpt2", ["xyzzy"])
    with pytest.raises(BadTokenizer, match="nothing.json"):
        Tokenizer.load(tmp_path / "nothing.json")
    listed().save(tmp_path / "t.json")
    with pytest.raises(BadArgument, match="/t.json: "):
        Tokenizer.load(tmp_path / "t.json", pattern="gpt2")


def test_a_normalizer_was_lost_in_silence(tmp_path):
    tokenizer = train(["a\u0301é".encode() * 9], 260, like="qwen-3")
    with pytest.raises(UnsupportedTokenizer):
        tokenizer.export_tiktoken(tmp_path / "t.tiktoken")
    assert not (tmp_path / "t.tiktoken").exists()


def test_two_merges_of_one_product_with_others_between():
    """The second merge comes after entries of higher IDs and does not change results of the first."""
    vocab = {id_: bytes([id_]) for id_ in range(256)}
    vocab |= {256: b"ab", 257: b"bc", 258: b"abc", 259: b"xy"}
    merges = [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"x", b"y"), (b"a", b"bc")]
    tokenizer = Tokenizer(vocab, merges)
    assert to_ranks(tokenizer).endswith(b"YWJj 258\neHk= 259\n")


@pytest.mark.parametrize("special_tokens", [["<s>", "<t>"], {"<s>": 9000, "<t>": 7}])
def test_files_of_odd_lines_take_special_tokens_too(special_tokens, ranked):
    data = to_ranks(ranked()).replace(b"\n", b"  \n\n")
    if isinstance(special_tokens, dict):
        with pytest.raises(BadTokenizer, match="special_tokens: ID 7 "):
            read(data, "gpt2", special_tokens)
        special_tokens = {"<s>": 9000}
    made = Tokenizer.from_parts(read(data, "gpt2", special_tokens))
    assert made == Tokenizer.from_parts(read(to_ranks(ranked()), "gpt2", special_tokens))
    for wrong, message in (
        (["e"], "special_tokens: .*'e'"),
        ([5], "special_tokens: .*5"),
    ):
        with pytest.raises(BadTokenizer, match=message):
            read(data, "gpt2", wrong)
