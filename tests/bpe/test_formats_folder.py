"""Folders without tokenizer.json: the tokenizer class decides, as in `transformers`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from folder_cases import MERGES, RECORDED, TEXTS, by_transformers, cases, model, vocabulary, write

from bpe import Tokenizer
from bpe.errors import BadArgument, BadTokenizer, UnsupportedTokenizer
from bpe.formats.by_path import files_of

CASES = cases()
EXPECTED: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())


@pytest.mark.slow
@pytest.mark.promise("published-files")
@pytest.mark.filterwarnings("ignore:.*no entries for the bytes")
@pytest.mark.parametrize("name", CASES)
def test_ids_equal_the_class(name: str, tmp_path: Path) -> None:
    """Qwen2Tokenizer used GPT-2's pattern without a normalizer, and added tokens were not read."""
    write(tmp_path, CASES[name])
    ours = Tokenizer.load(tmp_path)
    expected = EXPECTED[name]
    assert [ours.encode(text) for text in TEXTS] == expected["ids"]
    assert [ours.encode(text, add_special_tokens=True) for text in TEXTS[:2]] == expected["with ends"]
    added = [
        [each.text, each.id, each.special, each.lstrip, each.rstrip, each.single_word, each.normalized]
        for each in ours.added_tokens
    ]
    assert added == expected["added"]
    ours.save(tmp_path / "saved.json")
    assert [Tokenizer.load(tmp_path / "saved.json").encode(text) for text in TEXTS] == expected["ids"]


@pytest.mark.long
def test_the_records_equal_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    for number, (name, files) in enumerate(CASES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, files)
        assert by_transformers(folder) == EXPECTED[name], name


def pair(folder: Path, settings: dict[str, Any], **others: Any) -> Path:
    vocab, _ = vocabulary("GPT2Tokenizer")
    files = {"vocab.json": vocab, "merges.txt": "\n".join(MERGES).encode(), "tokenizer_config.json": settings}
    write(folder, files | {f"{name}.json": value for name, value in others.items()})
    return folder


GPT2 = {"tokenizer_class": "GPT2Tokenizer"}
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "class": ({"tokenizer_class": "FooTokenizer"}, {}, "tokenizer_class: .*'FooTokenizer'"),
    "no class": ({}, {"config": {"model_type": "foo"}}, "tokenizer_class: .*'foo'"),
    "class is no text": ({"tokenizer_class": 5}, {}, "tokenizer_class: "),
    "another ID": (GPT2, {"added_tokens": {"<extra>": 9000}}, "added_tokens.json: .*'<extra>'"),
    "no JSON": (GPT2, {"added_tokens": b"{"}, "added_tokens.json: line 1"),
    "no object": (GPT2, {"added_tokens": []}, "added_tokens.json: "),
    "split": (GPT2 | {"split_special_tokens": True}, {}, "split_special_tokens: "),
    "no end": ({"tokenizer_class": "RobertaTokenizer", "sep_token": None}, {}, "cls_token and sep_token"),
    "language": ({"tokenizer_class": "WhisperTokenizer", "language": "french"}, {}, "language: "),
    "token": (GPT2 | {"bos_token": {"text": "x"}}, {}, "bos_token: "),
}


@pytest.mark.promise("published-files")
@pytest.mark.parametrize("name", REFUSED)
def test_inexact_files_are_refused(name: str, tmp_path: Path) -> None:
    config, others, message = REFUSED[name]
    pair(tmp_path, config, **others)
    with pytest.raises(BadTokenizer, match=message) as caught:
        Tokenizer.load(tmp_path)
    assert "\n" not in str(caught.value)
    assert Tokenizer.load(tmp_path, pattern="gpt2").pattern == "gpt2"  # the argument takes precedence


def test_config_json_names_the_class_where_tokenizer_config_does_not(tmp_path: Path) -> None:
    of_type = Tokenizer.load(pair(tmp_path, {}, config={"model_type": "qwen2"}))
    assert of_type.normalizer == "NFC"
    assert Tokenizer.load(tmp_path / "vocab.json") == of_type
    names = ["vocab.json", "merges.txt", "tokenizer_config.json", "config.json"]
    assert files_of(tmp_path) == [tmp_path / name for name in names]
    named = {"model_type": "llama", "tokenizer_class": "GPTNeoXTokenizer"}
    assert Tokenizer.load(pair(tmp_path, {}, config=named)).pattern == "gpt2"
    with pytest.raises(BadArgument):
        Tokenizer.load(tmp_path, special_tokens=["<s>"])


def test_a_model_alone_is_read_as_sentencepiece_reads_it(tmp_path: Path) -> None:
    write(tmp_path, {"tokenizer.model": model("LlamaTokenizer"), "added_tokens.json": {"<extra>": 999}})
    assert "<extra>" not in Tokenizer.load(tmp_path / "tokenizer.model").special_tokens
    with pytest.raises(UnsupportedTokenizer, match="tokenizer_class"):
        Tokenizer.load(tmp_path)
    (tmp_path / "added_tokens.json").unlink()
    assert Tokenizer.load(tmp_path) == Tokenizer.load(tmp_path / "tokenizer.model")


def test_tokenizer_json_next_to_tekken_json_is_read_with_a_warning(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(pair(tmp_path, {"tokenizer_class": "GPT2Tokenizer"}))
    tokenizer.save(tmp_path / "tokenizer.json")
    shutil.copy(tmp_path / "tokenizer.json", tmp_path / "tekken.json")
    with pytest.warns(UserWarning, match=r"tokenizer\.json.*tekken\.json") as caught:
        assert Tokenizer.load(tmp_path) == tokenizer
    assert len(caught) == 1
