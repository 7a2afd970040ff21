"""Mistral's tekken.json: IDs equal tiktoken's with the same ranks."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from bpe.errors import BadArgument, BadTokenizer
from bpe.formats import tekken
from bpe.tokenizer import Tokenizer

PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?"
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)


@pytest.fixture
def document(ranked: Any) -> dict[str, Any]:
    """Return 30 special tokens, five of them named, and 40 more entries than the vocabulary size."""
    entries = sorted(ranked("gpt2", ()).ordinary_entries.items())
    assert [id_ for id_, _ in entries] == list(range(len(entries)))
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(entry).decode(), "token_str": None}
        for rank, entry in entries
    ]
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    return {
        "config": {
            "pattern": PATTERN,
            "num_vocab_tokens": len(vocab),
            "default_vocab_size": len(vocab) - 40 + 30,
            "default_num_special_tokens": 30,
            "version": "v11",
        },
        "vocab": vocab,
        "special_tokens": [
            {"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(names)
        ],
    }


def test_ids_are_tiktokens(document: dict[str, Any], tmp_path: Any, nasty_texts: dict[str, str]) -> None:
    import tiktoken

    (tmp_path / "tekken.json").write_text(json.dumps(document))
    ours = Tokenizer.load(tmp_path / "tekken.json")
    ranks = {base64.b64decode(item["token_bytes"]): item["rank"] for item in document["vocab"][:-40]}
    theirs = tiktoken.Encoding("t", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    for text in [*nasty_texts.values(), "the THE Then 12345 [INST"]:
        expected = [id_ + 30 for id_ in theirs.encode(text, disallowed_special=())]
        assert ours.encode(text) == expected
        assert ours.decode(expected) == text
    assert ours.encode("</s>[INST]<SPECIAL_29>") == [2, 3, 29]
    assert (ours.vocab_size, ours.max_token_id) == (len(ranks) + 30, len(ranks) + 29)
    ours.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").encode("the Then[INST]") == ours.encode(
        "the Then[INST]"
    )
    with pytest.raises(BadArgument):
        Tokenizer.load(tmp_path / "tekken.json", pattern="gpt2")


def test_files_that_list_no_special_tokens(document: dict[str, Any]) -> None:
    """Files before version 7; mistral-common has the names of the tokens."""
    del document["special_tokens"]
    ours = Tokenizer.from_parts(tekken.read(json.dumps(document).encode()))
    assert ours.special_tokens["[INST]"] == 3
    assert ours.special_tokens["[SUFFIX]"] == 16
    assert ours.special_tokens["<SPECIAL_20>"] == 20


def change(path: tuple[Any, ...], value: Any) -> Any:
    def apply(root: dict[str, Any]) -> None:
        for key in path[:-1]:
            root = root[key]
        root[path[-1]] = value

    return apply


WRONG = [
    (change(("more",), 1), "tekken.json.more: unknown field"),
    (change(("config", "pattern"), ""), "config.pattern: "),
    (change(("config", "more"), 1), "config.more: unknown field"),
    (change(("config", "default_vocab_size"), "1"), "config.default_vocab_size: "),
    (change(("config", "default_vocab_size"), 100), "config.default_vocab_size: "),
    (change(("config", "default_vocab_size"), 10**6), "config.default_vocab_size: "),
    (change(("vocab", 7, "rank"), 8), "vocab[7]: "),
    (change(("vocab", 7), 8), "vocab[7]: "),
    (change(("vocab", 7, "token_bytes"), "?"), "vocab[7].token_bytes: "),
    (change(("vocab", 7, "token_bytes"), "AA== 3"), "vocab[7].token_bytes: "),
    (change(("vocab", 7, "token_bytes"), "AAAA"), "the vocabulary lacks 1 of the 256 bytes"),
    (change(("special_tokens", 1, "rank"), 30), "special_tokens[1]: "),
    (change(("special_tokens", 1, "rank"), 0), "special_tokens[1]: "),
    (change(("special_tokens", 1, "token_str"), "</s>"), "special_tokens: "),
    (change(("special_tokens", 1, "token_str"), "e"), "special_tokens: "),
]


@pytest.mark.parametrize(("apply", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_faults_are_named(apply: Any, message: str, document: dict[str, Any]) -> None:
    apply(document)
    with pytest.raises(BadTokenizer, match=re.escape(message)):
        tekken.read(json.dumps(document).encode())
