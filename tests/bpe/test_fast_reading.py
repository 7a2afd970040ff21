"""The core's reading and writing of tokenizer files does what the readers and writers by Python objects do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bpe import _core
from bpe.description import Parts
from bpe.errors import BadTokenizer
from bpe.formats import bulk, huggingface, tiktoken
from bpe.formats.byte_alphabet import to_characters
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import every_split


def same(ours: Tokenizer | Parts, other: Tokenizer | Parts) -> None:
    ours, other = (Tokenizer.from_parts(it) if isinstance(it, Parts) else it for it in (ours, other))
    assert dict(ours.vocab) == dict(other.vocab)
    assert ours.ordinary_entries == other.ordinary_entries
    assert ours.merges == other.merges
    assert list(ours.special_tokens.items()) == list(other.special_tokens.items())
    assert (ours.vocab_size, ours.max_token_id, repr(ours)) == (
        other.vocab_size,
        other.max_token_id,
        repr(other),
    )
    assert ours.canonical_json == other.canonical_json
    assert (ours.is_rank_file, ours.whole_pretokens, ours.normalizer) == (
        other.is_rank_file,
        other.whole_pretokens,
        other.normalizer,
    )
    assert (ours.plain_added_tokens, ours.template, ours.pattern) == (
        other.plain_added_tokens,
        other.template,
        other.pattern,
    )
    assert ours == other


def same_outcome(read: Callable[[], Parts], read_otherwise: Callable[[], Parts]) -> None:
    """Both give the same tokenizer or the same error."""
    outcomes: list[Tokenizer | str] = []
    for each in (read, read_otherwise):
        try:
            outcomes.append(Tokenizer.from_parts(each()))
        except BadTokenizer as error:
            outcomes.append(str(error))
    first, second = outcomes
    assert type(first) is type(second)
    if isinstance(first, Tokenizer) and isinstance(second, Tokenizer):
        same(first, second)
    assert first == second


def read_by_core(data: bytes) -> Tokenizer:
    parts = bulk.read_model(data)
    assert parts is not None, "left to the other reader"
    return Tokenizer.from_parts(parts)


def rewritten(tokenizer: Tokenizer, **model: Any) -> dict[str, Any]:
    root: dict[str, Any] = json.loads(tokenizer.canonical_json)
    root["model"] |= model
    return root


SPELLINGS = {
    "compact": lambda root: json.dumps(root, ensure_ascii=False, separators=(",", ":")),
    "spaced": lambda root: json.dumps(root, ensure_ascii=False, indent=2),
    "escaped": lambda root: json.dumps(root, ensure_ascii=True),
    "line ends of Windows": lambda root: json.dumps(root, indent=1).replace("\n", "\r\n\t"),
    "merges first": lambda root: json.dumps(
        root | {"model": {"merges": root["model"]["merges"]} | root["model"]}
    ),
    "legacy merges": lambda root: json.dumps(
        root | {"model": root["model"] | {"merges": [" ".join(pair) for pair in root["model"]["merges"]]}}
    ),
    "model first": lambda root: json.dumps({"model": root["model"]} | root),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("whole_pretokens", [False, True], ids=["merges", "ignore_merges"])
def test_the_core_reads_what_python_reads(
    pattern: str, spelling: str, whole_pretokens: bool, listed: Any
) -> None:
    specials = {"日本": 997, "<s>": 998, "<|endoftext|>": 1000, 'a "quoted\\" one': 1005}
    tokenizer = listed(pattern, specials, whole_pretokens=whole_pretokens, plain_added_tokens=["<s>"])
    data = SPELLINGS[spelling](json.loads(tokenizer.canonical_json)).encode()
    same(read_by_core(data), huggingface.read_items(data))
    same(read_by_core(data), tokenizer)


def test_added_tokens_outside_the_vocabulary(listed: Any) -> None:
    root = rewritten(listed(special_tokens=[]))
    count = len(root["model"]["vocab"])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    root["added_tokens"] = [{"id": count + place, "content": f"<{place}é>"} | flags for place in range(300)]
    data = json.dumps(root).encode()
    same(read_by_core(data), huggingface.read_items(data))


def broken(change: Any) -> Any:
    def apply(root: dict[str, Any]) -> bytes:
        change(root)
        return json.dumps(root).encode()

    return apply


def set_vocab(key: str, value: Any) -> Any:
    return broken(lambda root: root["model"]["vocab"].__setitem__(key, value))


def replaced(old: bytes, new: bytes) -> Any:
    def apply(root: dict[str, Any]) -> bytes:
        data = json.dumps(root).encode()
        assert old in data
        return data.replace(old, new, 1)

    return apply


# What the core must leave to the other reader, be it wrong (then that one raises) or odd (then it reads).
LEFT = {
    "id twice": set_vocab("zz", 5),
    "id is a text": set_vocab("zz", "5"),
    "id is negative": set_vocab("zz", -1),
    "id is 1.0": set_vocab("zz", 1.0),
    "id too large": set_vocab("zz", 2**31),
    "id far too large": set_vocab("zz", 10**30),
    "empty entry": set_vocab("", 5000),
    "entry outside the alphabet": set_vocab("a b", 5000),
    "byte missing": broken(lambda root: root["model"]["vocab"].pop("!")),
    "merge of no entry": broken(lambda root: root["model"]["merges"].append(["!", "nope"])),
    "merge to no entry": broken(lambda root: root["model"]["merges"].append(["~", "~"])),
    "merge of three": broken(lambda root: root["model"]["merges"].append(["a", "b", "c"])),
    "merge is a number": broken(lambda root: root["model"]["merges"].append(7)),
    "merge line of three": broken(lambda root: root["model"]["merges"].append("a b c")),
    "merge line of one": broken(lambda root: root["model"]["merges"].append("ab")),
    "merge twice": broken(lambda root: root["model"]["merges"].append(root["model"]["merges"][3])),
    "vocab is a list": broken(lambda root: root["model"].__setitem__("vocab", [])),
    "vocab is empty": broken(lambda root: root["model"].__setitem__("vocab", {})),
    "merges is null": broken(lambda root: root["model"].__setitem__("merges", None)),
    "special token spelled like a byte": broken(lambda root: root["added_tokens"][0].update(content="é")),
    "added token is no object": broken(lambda root: root["added_tokens"].append(5)),
    "dropout": broken(lambda root: root["model"].__setitem__("dropout", 0.1)),
    "unknown field": broken(lambda root: root["model"].__setitem__("more", 1)),
    "comma at the end of vocab": replaced(b'}, "merges"', b',}, "merges"'),
    "key twice": replaced(b'"vocab": {', b'"vocab": {"!": 0, '),
    "vocab twice": replaced(b'"vocab": {', b'"vocab": {}, "vocab": {'),
    "leading zero": replaced(b'"!": 33', b'"!": 033'),
    "control character": replaced(b'"!": 33', b'"!\n": 33'),
    "lone surrogate": replaced(b'"!": 33', b'"\\ud800": 33'),
    "bad escape": replaced(b'"!": 33', b'"\\x21": 33'),
    "byte order mark": replaced(b'{"version"', b'\xef\xbb\xbf{"version"'),
    "not UTF-8": replaced(b'"!": 33', b'"\xff": 33'),
    "something behind": lambda root: json.dumps(root).encode() + b"x",
    "NaN": replaced(b'"truncation": null', b'"truncation": NaN'),
    "a list": lambda root: b"[]",
    "nothing": lambda root: b"",
}


@pytest.mark.parametrize("change", LEFT)
def test_what_is_not_regular_is_left_to_python(change: str, listed: Any) -> None:
    data = LEFT[change](json.loads(listed().canonical_json))
    assert bulk.read_model(data) is None
    same_outcome(lambda: huggingface.read(data), lambda: huggingface.read_items(data))


def test_a_document_cut_anywhere_is_left_to_python(listed: Any) -> None:
    data = json.dumps(json.loads(listed().canonical_json)).encode()
    for stop in range(0, len(data), 97):
        assert bulk.read_model(data[:stop]) is None


def test_a_special_token_that_merges_need_is_left_to_python(listed: Any) -> None:
    made = next(left + right for left, right in listed().merges if (left + right).isalpha())
    tokenizer = listed(special_tokens=[made.decode()])
    assert bulk.read_model(tokenizer.canonical_json) is None
    assert Tokenizer.from_parts(huggingface.read(tokenizer.canonical_json)) == tokenizer


# -- rank files


def rank_file(ranked: Any) -> bytes:
    return tiktoken.to_ranks(ranked("gpt2", ()))


@pytest.mark.parametrize(
    "special_tokens",
    [None, (), ["<s>", "<t>"], {"<s>": 5000, "<|é|>": 700}],
    ids=["none", "empty", "list", "mapping"],
)
def test_the_core_reads_rank_files(pattern: str, special_tokens: Any, ranked: Any) -> None:
    data = rank_file(ranked)
    ours = bulk.read_ranks(data, pattern, special_tokens)
    assert ours is not None
    same(ours, tiktoken.read_lines(data, pattern, special_tokens))
    shuffled = b"\n".join(sorted(data.split(b"\n")))
    other = bulk.read_ranks(shuffled, pattern, special_tokens)
    assert other is not None
    same(other, ours)


RANKS_LEFT = {
    "rank twice": lambda data: data + b"enp6eg== 5\n",
    "bytes twice": lambda data: data + b"IQ== 9999\n",
    "no base64": lambda data: data + b"I*== 9999\n",
    "base64 cut": lambda data: data + b"IQ= 9999\n",
    "no rank": lambda data: data + b"enp6eg==\n",
    "negative": lambda data: data + b"enp6eg== -1\n",
    "large": lambda data: data + b"enp6eg== 99999999999999999999\n",
    "two spaces": lambda data: data + b"enp6eg==  9999\n",
    "line ends of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "nothing": lambda data: b"",
}


@pytest.mark.parametrize("change", RANKS_LEFT)
def test_rank_files_that_are_not_regular_are_left_to_python(change: str, ranked: Any) -> None:
    data = RANKS_LEFT[change](rank_file(ranked))
    assert bulk.read_ranks(data, "gpt2", None) is None
    same_outcome(lambda: tiktoken.read(data, "gpt2", None), lambda: tiktoken.read_lines(data, "gpt2", None))


@pytest.mark.parametrize(
    "special_tokens",
    ["<s>", ["<s>", "<s>"], [""], [5], {"<s>": 5}, {"<s>": -1}, {"<s>": 800, "<t>": 800}, ["the the"]],
    ids=["text", "twice", "empty", "number", "id taken", "negative", "same id", "an entry"],
)
def test_special_tokens_that_are_wrong_are_left_to_python(special_tokens: Any, ranked: Any) -> None:
    data = rank_file(ranked)
    assert bulk.read_ranks(data, "gpt2", special_tokens) is None
    with pytest.raises(BadTokenizer):
        tiktoken.read(data, "gpt2", special_tokens)


# -- writing


def test_written_json_is_what_json_dumps_writes(pattern: str, listed: Any, ranked: Any) -> None:
    for tokenizer in (listed(pattern, {"<|é|>": 999, 'q"\\': 1001}), ranked(pattern)):
        text = tokenizer.canonical_json
        root = json.loads(text)
        assert json.dumps(root, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" == text
        special = {id_: token for token, id_ in tokenizer.special_tokens.items()}
        assert list(root["model"]["vocab"].items()) == [
            (special.get(id_) or to_characters(entry), id_) for id_, entry in tokenizer.vocab.items()
        ]
        assert root["model"]["merges"] == [
            [to_characters(left), to_characters(right)] for left, right in tokenizer.merges
        ]
        assert [
            pair.split(" ") for pair in json.loads(huggingface.to_json(tokenizer, True))["model"]["merges"]
        ] == (root["model"]["merges"])


def test_splits_of_the_core_are_those_of_python(ranked: Any) -> None:
    tokenizer = Tokenizer.from_parts(tiktoken.read(rank_file(ranked), "gpt2", None))
    assert tokenizer.merges == every_split(tokenizer.ordinary_entries)


def test_entries_are_found_both_ways(ranked: Any) -> None:
    tokenizer = Tokenizer.from_parts(tiktoken.read(rank_file(ranked), "gpt2", {"<s>": 5000}))
    for id_, entry in tokenizer.ordinary_entries.items():
        assert tokenizer.id_to_token(id_) == entry
        assert tokenizer.token_to_id(entry) == id_
    assert tokenizer.id_to_token(5000) == b"<s>"
    assert [tokenizer.id_to_token(id_) for id_ in (-1, 4999, 5001, 2**31, 2**80)] == [None] * 5
    assert [tokenizer.token_to_id(b""), tokenizer.token_to_id(b"no such entry")] == [None, None]


def test_no_merges_make_an_empty_list() -> None:
    entries = {byte: bytes([byte]) for byte in range(256)}
    tokenizer = Tokenizer(entries, [])
    assert json.loads(tokenizer.canonical_json)["model"]["merges"] == []
    assert read_by_core(tokenizer.canonical_json) == tokenizer
    assert _core.Encoder(entries, [], {}, "gpt2", False).merges_json(True).__next__() == b"[]"
