"""Rank files, GPT-2's pair, tekken.json and folders: IDs equal other readers', and malformed files are refused."""

from __future__ import annotations

import base64
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tokenizers
from tiktoken.load import load_tiktoken_bpe
from tokenizers import models, pre_tokenizers

from bpe import Tokenizer, train
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer

SPECIAL = "<|endoftext|>"
BYTES = {byte: bytes([byte]) for byte in range(256)}


def refused(path: Path, message: str, **options: Any) -> None:
    """Check the one line of the error, which starts with the path of the file."""
    with pytest.raises(BadTokenizer, match=message) as caught:
        Tokenizer.load(path, **options)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).isprintable()


@pytest.mark.promise("limits")
def test_files_and_patterns_beyond_their_limits(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with path.open("wb") as file:
        file.truncate((128 << 20) + 1)
    refused(path, "134,217,728")
    path.write_text(f"[{'0,' * 8_000_000}0]")
    refused(path, "8,000,000")
    with pytest.raises(BadTokenizer, match="2,000"):
        Tokenizer(BYTES, [], pattern="a{2000}|.")


# -- rank files


@pytest.mark.promise("saved-files")
@pytest.mark.parametrize("special_tokens", [None, [], ["<s>", "<t>"], {"<s>": 5000, "<|é|>": 700}], ids=repr)
def test_rank_files_are_read_and_written(
    special_tokens: Any, pattern: str, ranked: Callable[..., Tokenizer], tmp_path: Path
) -> None:
    tokenizer = Tokenizer(ranked("gpt2", ()).ordinary_entries, None, special_tokens, pattern)
    path = tmp_path / "t.tiktoken"
    tokenizer.export_tiktoken(path)
    data = path.read_bytes()
    assert load_tiktoken_bpe(str(path)) == {entry: id_ for id_, entry in tokenizer.ordinary_entries.items()}
    for spelling in (
        data,
        b"\n".join(sorted(data.split(b"\n"))),
        data.replace(b" ", b"\t "),
        data.replace(b"\n", b"\r\n").removesuffix(b"\r\n"),
        b"\n\n \n" + data.replace(b"\n", b"  \n\n"),
        b"\n\r\n" + data,  # like a SentencePiece model
    ):
        path.write_bytes(spelling)
        again = Tokenizer.load(path, pattern=pattern, special_tokens=special_tokens)
        assert again == tokenizer
        assert again.is_rank_file
    again.save(tmp_path / "t.json")
    of_json = Tokenizer.load(tmp_path / "t.json")
    assert not of_json.is_rank_file
    of_json.export_tiktoken(path)
    assert path.read_bytes() == data


RANKS = {
    "no number": (b"IQ== x\n", "line 1: "),
    "too large": (b"IQ== 99999999999999999999\n", "line 1: "),
    "no base64": (b"IQ== 0\nI?== 1\n", "line 2: "),
    "rank twice": (b"IQ== 0\n\nIg== 0\n", "vocab: ID 0 "),
    "bytes twice": (b"IQ== 0\nIQ== 9\n", "vocab[0]: same bytes as vocab[9]"),
    "taken for a SentencePiece model": (b"\n?\nIQ== 0\n", "line 2: "),
    "nothing": (b"", "vocab: 256 of the 256 bytes"),
}


@pytest.mark.parametrize("name", RANKS)
def test_malformed_rank_files_are_refused(name: str, tmp_path: Path) -> None:
    data, message = RANKS[name]
    (tmp_path / "t.tiktoken").write_bytes(data)
    refused(tmp_path / "t.tiktoken", re.escape(message), pattern="gpt2")


@pytest.mark.parametrize(
    "special_tokens", ["<s>", [""], [5], ["e"], {"<s>": 5}, {"<s>": -1}, {"<s>": 800, "<t>": 800}], ids=repr
)
def test_special_tokens_of_a_rank_file(special_tokens: Any, ranked: Any, tmp_path: Path) -> None:
    ranked("gpt2", ()).export_tiktoken(tmp_path / "t.tiktoken")
    refused(tmp_path / "t.tiktoken", "special_tokens: |<s>", pattern="gpt2", special_tokens=special_tokens)


def test_an_empty_entry_of_a_rank_file_decodes_to_nothing(tmp_path: Path) -> None:
    """Whisper's multilingual.tiktoken ends with one."""
    lines = [base64.b64encode(entry) + b" %d" % byte for byte, entry in BYTES.items()]
    lines += [b"= 300", b"YWI= 256"]
    path, again = tmp_path / "some.tiktoken", tmp_path / "again.tiktoken"
    path.write_bytes(b"\n".join(lines))
    ours = Tokenizer.load(path, pattern="gpt2", special_tokens=["<s>"])
    assert (ours.max_token_id, ours.vocab_size, ours.vocab[300]) == (301, 259, b"")
    assert ours.encode("ab<s>") == [256, 301]
    assert (ours.token_to_id(b""), ours.id_to_token(300)) == (300, b"")
    assert ours.decode([97, 300, 256]) == "aab"
    assert pickle.loads(pickle.dumps(ours)).decode([300]) == ""
    ours.export_tiktoken(again)
    assert sorted(again.read_bytes().split(b"\n")) == sorted([*lines, b""])
    ours.save(tmp_path / "tokenizer.json")
    assert tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json")).decode([97, 300, 256]) == "aab"


def test_listed_merges_as_ranks_give_the_same_ids(
    listed: Any, pattern: str, tmp_path: Path, nasty_texts: Any, random_texts: Any
) -> None:
    # The second merge of a product comes after entries of higher IDs and does not change results of the first.
    entries = BYTES | {256: b"ab", 257: b"bc", 258: b"abc", 259: b"xy"}
    merges = [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"x", b"y"), (b"a", b"bc")]
    for tokenizer in (listed(pattern), Tokenizer(entries, merges, [SPECIAL], pattern)):
        tokenizer.export_tiktoken(tmp_path / "t.tiktoken")
        again = Tokenizer.load(tmp_path / "t.tiktoken", pattern, [SPECIAL])
        for text in [*nasty_texts.values(), "abc bcxyabc", *random_texts(seed=9, count=80, size=40)]:
            assert again.encode(text) == tokenizer.encode(text), repr(text)


def test_what_ranks_cannot_express_is_not_written(trained: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.tiktoken"
    entries, merges = trained("gpt2")
    with pytest.raises(BadTokenizer, match="entry 900"):
        Tokenizer(entries | {900: b"xyzzy"}, merges).export_tiktoken(path)
    last = max(entries)
    exchanged = entries | {last: entries[last - 1], last - 1: entries[last]}
    with pytest.raises(BadTokenizer, match=r"merges\[\d+\]: "):
        Tokenizer(exchanged, merges).export_tiktoken(path)
    with pytest.raises(UnsupportedTokenizer):  # the normalizer was lost in silence
        train(["a\u0301é".encode() * 9], 260, like="qwen-3").export_tiktoken(path)
    assert not path.exists()
    entries |= {900: b"theth"}
    Tokenizer(entries, Tokenizer(entries, None).merges, ignore_merges=True).export_tiktoken(path)
    assert path.read_bytes().endswith(b" 900\n")


# -- vocab.json and merges.txt


@pytest.fixture
def pair(listed: Callable[..., Tokenizer], tmp_path: Path) -> Path:
    listed().export_gpt2(tmp_path / "gpt2")
    return tmp_path / "gpt2"


@pytest.mark.promise("saved-files")
def test_a_pair_is_read_by_every_path(pair: Path, listed: Any, nasty_texts: Any) -> None:
    theirs = tokenizers.Tokenizer(models.BPE.from_file(str(pair / "vocab.json"), str(pair / "merges.txt")))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    for text in nasty_texts.values():
        assert theirs.encode(text).ids == listed().encode(text, allowed_special=())
    for path in (pair, pair / "vocab.json", pair / "merges.txt", str(pair)):
        assert Tokenizer.load(path) == listed()
    merges = (pair / "merges.txt").read_bytes()
    (pair / "merges.txt").write_bytes(merges.replace(b"\n", b"\r\n"))
    for name in ("vocab.json", "merges.txt"):
        (pair / name).rename(pair / f"gpt2-{name}")
    assert Tokenizer.load(pair / "gpt2-merges.txt") == listed()


def test_special_tokens_of_a_pair_are_given_or_follow_the_highest_id(listed: Any, tmp_path: Path) -> None:
    """IDs may have gaps, so the entry count is not the next ID; existing tokens keep their IDs."""
    listed("llama3", special_tokens=["<s>", "[x]"]).export_gpt2(tmp_path)
    assert Tokenizer.load(tmp_path).special_tokens == {"<s>": 556}
    vocab = json.loads((tmp_path / "vocab.json").read_bytes())
    (tmp_path / "vocab.json").write_text(json.dumps(vocab | {"<far>": 9000, "a b": 900}))
    again = Tokenizer.load(tmp_path, pattern="llama3", special_tokens=["<new>", "<far>", "[x]", "<newer>"])
    assert again.special_tokens == {"[x]": 557, "<new>": 9001, "<far>": 9000, "<newer>": 9002}
    assert again.pattern == "llama3"
    assert (again.decode([97, 900]), 900 in again.encode("a b a")) == ("aa b", False)
    assert Tokenizer.load(tmp_path, special_tokens={"<s>": 556}).special_tokens == {"<s>": 556}


PAIRS: dict[str, tuple[Any, Any, str]] = {
    "one part": ({}, b"a b\nab\n", "merges.txt: line 2: "),
    "outside the alphabet": ({}, "▁ a\n".encode(), "merges.txt: line 1: "),
    "unknown entry": ({}, b"zzz b\n", r"merges\[0\]: "),
    "an ID twice": ({"a": 98}, None, "entry '[ab]': .*98"),
    "no merges": ({}, ..., "vocab.json.*merges.txt"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_malformed_pairs_are_refused(name: str, pair: Path) -> None:
    changes, merges, message = PAIRS[name]
    vocab = json.loads((pair / "vocab.json").read_bytes())
    vocab = vocab | changes if isinstance(changes, dict) else changes
    (pair / "vocab.json").write_text(json.dumps(vocab))
    if merges is ...:
        (pair / "merges.txt").unlink()
    elif merges is not None:
        (pair / "merges.txt").write_bytes(merges)
    refused(pair, message)


def test_what_a_pair_cannot_express_is_not_written(listed: Any, ranked: Any, tmp_path: Path) -> None:
    for tokenizer in (listed(normalizer="NFC"), ranked()):
        with pytest.raises(UnsupportedTokenizer):
            tokenizer.export_gpt2(tmp_path)
    listed(ignore_merges=True).export_gpt2(tmp_path)  # merges reach every entry: no difference
    assert Tokenizer.load(tmp_path) == listed()


# -- tekken.json

TEKKEN = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]*[\p{Ll}\p{M}]+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s+(?!\S)|\s+|\p{L}"
NAMES = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]


def tekken(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return 30 special tokens, five of them named, and 40 more entries than the vocabulary size."""
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(entry).decode(), "token_str": None}
        for rank, entry in sorted(tokenizer.ordinary_entries.items())
    ]
    config = {"pattern": TEKKEN, "num_vocab_tokens": len(vocab), "default_vocab_size": len(vocab) - 10}
    return {
        "config": config | {"default_num_special_tokens": 30, "version": "v11"},
        "vocab": vocab,
        "special_tokens": [
            {"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(NAMES)
        ],
    }


def test_ids_of_tekken_are_tiktokens(ranked: Any, tmp_path: Path, nasty_texts: Any) -> None:
    document, path = tekken(ranked("gpt2", ())), tmp_path / "tekken.json"
    path.write_text(json.dumps(document))
    ours = Tokenizer.load(path)
    ranks = {base64.b64decode(item["token_bytes"]): item["rank"] for item in document["vocab"][:-40]}
    theirs = tiktoken.Encoding("t", pat_str=TEKKEN, mergeable_ranks=ranks, special_tokens={})
    for text in [*nasty_texts.values(), "the THE Then 12345 [INST"]:
        expected = [id_ + 30 for id_ in theirs.encode(text, disallowed_special=())]
        assert ours.encode(text) == expected
        assert ours.decode(expected) == theirs.decode([id_ - 30 for id_ in expected])
    assert ours.encode("</s>[INST]<SPECIAL_29>") == [2, 3, 29]
    assert (ours.vocab_size, ours.max_token_id) == (len(ranks) + 30, len(ranks) + 29)
    ours.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json").encode("the Then[INST]") == ours.encode("the Then[INST]")
    with pytest.raises(BadArgument):
        Tokenizer.load(path, pattern="gpt2")
    del document["special_tokens"]  # before version 7; mistral-common has the names
    path.write_text(json.dumps(document))
    assert Tokenizer.load(path).encode("[INST][SUFFIX]<SPECIAL_20>") == [3, 16, 20]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("config.more", 1, "config.more: unknown field"),
        ("config.default_vocab_size", 10**6, "config.default_vocab_size: "),
        ("vocab.7.rank", 8, "vocab[7]: "),
        ("vocab.7.token_bytes", "?", "vocab[7].token_bytes: "),
        ("vocab.7.token_bytes", "AAAA", "vocab: 1 of the 256 bytes"),
        ("special_tokens.1.rank", 30, "special_tokens[1]: "),
        ("special_tokens.1.token_str", "</s>", "special_tokens: "),
    ],
)
def test_malformed_tekken_files_are_refused(
    place: str, value: Any, message: str, ranked: Any, tmp_path: Path
) -> None:
    document = tekken(ranked("gpt2", ()))
    *parents, last = (int(key) if key.isdigit() else key for key in place.split("."))
    parent: Any = document
    for key in parents:
        parent = parent[key]
    parent[last] = value
    (tmp_path / "tekken.json").write_text(json.dumps(document))
    refused(tmp_path / "tekken.json", re.escape(message))


# -- folders


def test_the_first_of_the_known_names_in_a_folder_is_loaded(tmp_path: Path) -> None:
    of_bytes = train([b"the mill the miller"], 260)
    of_text = train([b"the mill the miller"], 280, ["<unk>"], like="llama-2")
    refused(tmp_path, "tokenizer.json")
    refused(tmp_path / "nothing.json", "No such file")
    of_bytes.export_tiktoken(tmp_path / "some.tiktoken")
    assert Tokenizer.load(tmp_path, pattern="gpt2").ordinary_entries == of_bytes.ordinary_entries
    with pytest.raises(BadArgument, match="some.tiktoken"):
        Tokenizer.load(tmp_path)
    of_bytes.export_tiktoken(tmp_path / "other.tiktoken")
    refused(tmp_path, "2 rank files", pattern="gpt2")
    of_text.export_sentencepiece(tmp_path / "tokenizer.model")
    assert Tokenizer.load(tmp_path).text_rules is not None
    of_bytes.export_gpt2(tmp_path)
    assert Tokenizer.load(tmp_path) == of_bytes
    (tmp_path / "merges.txt").unlink()
    assert Tokenizer.load(tmp_path).text_rules is not None
    of_text.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path) == of_text
    with pytest.raises(BadArgument, match="/tokenizer.json: "):
        Tokenizer.load(tmp_path / "tokenizer.json", pattern="gpt2")
