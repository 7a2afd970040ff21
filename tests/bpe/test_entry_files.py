"""Entries and merges read and written by the core: every spelling, and every error."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pretoken_ends import automaton_of

from bpe import _core
from bpe.added_tokens import AddedToken
from bpe.errors import BadTokenizer
from bpe.formats import huggingface, tiktoken
from bpe.formats.byte_alphabet import to_characters
from bpe.parts import Parts
from bpe.tokenizer import Tokenizer
from bpe.vocabulary import every_split


def same(ours: Tokenizer | Parts, other: Tokenizer | Parts) -> None:
    ours, other = (Tokenizer.from_parts(it) if isinstance(it, Parts) else it for it in (ours, other))
    assert dict(ours.vocab) == dict(other.vocab)
    assert ours.ordinary_entries == other.ordinary_entries
    assert ours.merges == other.merges
    assert ours.special_tokens == other.special_tokens
    assert (ours.vocab_size, ours.max_token_id, repr(ours)) == (
        other.vocab_size,
        other.max_token_id,
        repr(other),
    )
    assert ours.canonical_json == other.canonical_json
    assert (ours.is_rank_file, ours.ignore_merges, ours.normalizer) == (
        other.is_rank_file,
        other.ignore_merges,
        other.normalizer,
    )
    assert (ours.added_tokens, ours.post_processor, ours.pattern) == (
        other.added_tokens,
        other.post_processor,
        other.pattern,
    )
    assert ours == other


def read(data: bytes) -> Tokenizer:
    return Tokenizer.from_parts(huggingface.read(data))


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
@pytest.mark.parametrize("ignore_merges", [False, True], ids=["merges", "ignore_merges"])
def test_every_spelling_is_read(pattern: str, spelling: str, ignore_merges: bool, listed: Any) -> None:
    specials = [
        AddedToken("日本", 997),
        AddedToken("<s>", 998, special=False),
        AddedToken("<|endoftext|>", 1000),
        AddedToken('a "quoted\\" one', 1005),
    ]
    tokenizer = listed(pattern, specials, ignore_merges=ignore_merges)
    same(read(SPELLINGS[spelling](json.loads(tokenizer.canonical_json)).encode()), tokenizer)


def test_added_tokens_outside_the_vocabulary(listed: Any) -> None:
    root = rewritten(listed(special_tokens=[]))
    count = len(root["model"]["vocab"])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    root["added_tokens"] = [{"id": count + place, "content": f"<{place}é>"} | flags for place in range(300)]
    data = json.dumps(root).encode()
    tokenizer = read(data)
    same(read(tokenizer.canonical_json), tokenizer)
    assert [token.id for token in tokenizer.added_tokens] == list(range(count, count + 300))


def broken(change: Any) -> Any:
    def apply(root: dict[str, Any]) -> bytes:
        change(root)
        return json.dumps(root).encode()

    return apply


def set_vocab(key: str, value: Any) -> Any:
    return broken(lambda root: root["model"]["vocab"].__setitem__(key, value))


def set_model(key: str, value: Any) -> Any:
    return broken(lambda root: root["model"].__setitem__(key, value))


def add_merge(merge: Any) -> Any:
    return broken(lambda root: root["model"]["merges"].append(merge))


def replaced(old: bytes, new: bytes) -> Any:
    def apply(root: dict[str, Any]) -> bytes:
        data = json.dumps(root).encode()
        assert old in data
        return data.replace(old, new, 1)

    return apply


# Change to the file -> error text, or None if the file is valid.
WRONG = {
    "id is 1.0": (set_vocab("zz", 1.0), "model.vocab['zz']: "),
    "id far too large": (set_vocab("zz", 10**30), "model.vocab['zz']: "),
    "merge of three": (add_merge(["a", "b", "c"]), "model.merges["),
    "merge is a number": (add_merge(7), "model.merges["),
    "merge twice": (
        broken(lambda root: root["model"]["merges"].append(root["model"]["merges"][3])),
        "model.merges[",
    ),
    "vocab is empty": (set_model("vocab", {}), "added_tokens[0].id: must be 0"),
    "added token is no object": (
        broken(lambda root: root["added_tokens"].append(5)),
        "added_tokens[1]: ",
    ),
    "comma at the end of vocab": (
        replaced(b'}, "merges"', b',}, "merges"'),
        "line 1 column",
    ),
    "key twice": (replaced(b'"vocab": {', b'"vocab": {"!": 9999, '), "are both b'!'"),
    "text twice": (
        replaced(b'"vocab": {', b'"vocab": {" ": 9998, " ": 9999, '),
        "model.vocab: a key is given twice",
    ),
    "vocab twice": (replaced(b'"vocab": {', b'"vocab": {}, "vocab": {'), "key 'vocab': "),
    "leading zero": (replaced(b'"!": 33', b'"!": 033'), "line 1 column"),
    "control character": (replaced(b'"!": 33', b'"!\n": 33'), "line 1 column"),
    "lone surrogate": (replaced(b'"!": 33', b'"\\ud800": 33'), "'\\ud800'"),
    "bad escape": (replaced(b'"!": 33', b'"\\x21": 33'), "line 1 column"),
    "byte order mark": (replaced(b'{"version"', b'\xef\xbb\xbf{"version"'), None),
    "not UTF-8": (replaced(b'"!": 33', b'"\xff": 33'), "byte "),
    "something behind": (lambda root: json.dumps(root).encode() + b"x", "line 1 column"),
    "a fault before the model, lines later": (
        lambda root: json.dumps(root, indent=1).replace('"truncation": null', '"truncation": nul').encode(),
        "line 3 column",
    ),
    "a fault behind it": (
        lambda root: json.dumps({"model": root["model"]} | root, indent=1).encode().rstrip()[:-1] + b",}",
        re.compile(r"line [1-9]\d{3} column"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_faults_are_named(name: str, listed: Any) -> None:
    change, message = WRONG[name]
    data = change(json.loads(listed().canonical_json))
    if message is None:
        assert read(data) == listed()
        return
    with pytest.raises(
        BadTokenizer, match=re.escape(message) if isinstance(message, str) else message
    ) as raised:
        read(data)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("value", ['"\\x"', '"a\n"', "[1,]", '["\\ud800", 1e]'])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_syntax_error_in_the_merges_has_its_line_and_column(
    value: str, indent: int | None, listed: Any
) -> None:
    root = json.loads(listed().canonical_json)
    root["model"]["merges"][5] = "MARK"
    text = json.dumps(root, indent=indent).replace('"MARK"', value)
    with pytest.raises(BadTokenizer) as raised:
        read(text.encode())
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    line, column = re.match(r"line (\d+) column (\d+): not valid JSON", str(raised.value)).groups()  # type: ignore[union-attr]
    assert int(line) == expected.value.lineno
    assert abs(int(column) - expected.value.colno) <= 1


def test_a_special_token_that_merges_need(listed: Any) -> None:
    made = next(left + right for left, right in listed().merges if (left + right).isalpha())
    tokenizer = listed(special_tokens=[made.decode(), "e"])
    same(read(tokenizer.canonical_json), tokenizer)


# -- rank files


def rank_file(ranked: Any) -> bytes:
    return tiktoken.to_ranks(ranked("gpt2", ()))


@pytest.mark.parametrize(
    "special_tokens",
    [None, (), ["<s>", "<t>"], {"<s>": 5000, "<|é|>": 700}],
    ids=["none", "empty", "list", "mapping"],
)
def test_rank_files_are_read(pattern: str, special_tokens: Any, ranked: Any) -> None:
    data = rank_file(ranked)
    ours = Tokenizer.from_parts(tiktoken.read(data, pattern, special_tokens))
    same(ours, Tokenizer(ranked("gpt2", ()).ordinary_entries, None, special_tokens, pattern))
    shuffled = b"\n".join(sorted(data.split(b"\n")))
    same(tiktoken.read(shuffled, pattern, special_tokens), ours)


RANKS = {
    "rank twice": (lambda data: data + b"enp6eg== 5\n", "id 5 is that of both"),
    "bytes twice": (lambda data: data + b"IQ== 9999\n", "are both b'!'"),
    "no base64": (lambda data: data + b"I*== 9999\n", "'I*== 9999'"),
    "base64 cut": (lambda data: data + b"IQ= 9999\n", "'IQ= 9999'"),
    "no rank": (lambda data: data + b"enp6eg==\n", "'enp6eg=='"),
    "negative": (lambda data: data + b"enp6eg== -1\n", "'enp6eg== -1'"),
    "large": (
        lambda data: data + b"enp6eg== 99999999999999999999\n",
        "'enp6eg== 99999999999999999999'",
    ),
    "two spaces": (lambda data: data.replace(b" ", b"  "), None),
    "line ends of Windows": (lambda data: data.replace(b"\n", b"\r\n"), None),
    "empty lines": (lambda data: b"\n \n" + data.replace(b"\n", b"\n\n"), None),
    "nothing": (lambda data: b"", "lacks 256 of the 256 bytes"),
}


@pytest.mark.parametrize("name", RANKS)
def test_lines_of_rank_files(name: str, ranked: Any) -> None:
    change, message = RANKS[name]
    data = change(rank_file(ranked))
    if message is None:
        same(tiktoken.read(data, "gpt2", None), tiktoken.read(rank_file(ranked), "gpt2", None))
        return
    with pytest.raises(BadTokenizer, match=re.escape(message)):
        tiktoken.read(data, "gpt2", None)


@pytest.mark.parametrize(
    "special_tokens",
    ["<s>", ["<s>", "<s>"], [""], [5], {"<s>": 5}, {"<s>": -1}, {"<s>": 800, "<t>": 800}, ["e"]],
    ids=["text", "twice", "empty", "number", "id taken", "negative", "same id", "an entry"],
)
def test_special_tokens_that_are_wrong(special_tokens: Any, ranked: Any) -> None:
    data = rank_file(ranked)
    with pytest.raises(BadTokenizer):
        tiktoken.read(data, "gpt2", special_tokens)


# -- writing


def test_written_json_equals_json_dumps(pattern: str, listed: Any, ranked: Any) -> None:
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


def test_splits_of_the_core_equal_python(ranked: Any) -> None:
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
    assert read(tokenizer.canonical_json) == tokenizer
    assert (
        _core.TokenizerCore(entries, [], {}, automaton_of("gpt2"), False).merges_json(True).__next__()
        == b"[]"
    )
