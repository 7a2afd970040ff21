"""Select the tokenizer file of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe import Tokenizer, train
from bpe.errors import BadArgument, BadTokenizer


def test_the_first_of_the_known_names_in_a_folder_is_loaded(tmp_path: Path) -> None:
    of_bytes = train([b"the mill the miller"], 260)
    of_text = train([b"the mill the miller"], 280, ["<unk>"], like="llama-2")
    with pytest.raises(BadTokenizer, match="tokenizer.json"):
        Tokenizer.load(tmp_path)
    of_bytes.export_tiktoken(tmp_path / "some.tiktoken")
    assert Tokenizer.load(tmp_path, pattern="gpt2").ordinary_entries == of_bytes.ordinary_entries
    with pytest.raises(BadArgument, match="some.tiktoken"):
        Tokenizer.load(tmp_path)
    of_bytes.export_tiktoken(tmp_path / "other.tiktoken")
    with pytest.raises(BadTokenizer):
        Tokenizer.load(tmp_path, pattern="gpt2")
    of_text.export_sentencepiece(tmp_path / "tokenizer.model")
    assert Tokenizer.load(tmp_path).text_rules is not None
    of_bytes.export_gpt2(tmp_path)
    assert Tokenizer.load(tmp_path) == of_bytes
    (tmp_path / "merges.txt").unlink()
    assert Tokenizer.load(tmp_path).text_rules is not None
    of_text.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path) == of_text


def test_half_of_a_pair_is_named(tmp_path: Path) -> None:
    train([b"the mill"], 258).export_gpt2(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(BadTokenizer, match="vocab.json.*merges.txt"):
        Tokenizer.load(tmp_path)
