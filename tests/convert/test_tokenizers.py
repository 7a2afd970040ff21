"""The tokenizer of a run: where it may come from, what the manifest says of that, and what is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path
from uuid import uuid4

import pytest

from bpe import BadTokenizer, Tokenizer
from convert.driver.tokenizers import load_tokenizer
from flat_tokens.format import LARGEST_TOKEN_ID
from tokenmill.stores import open_store


def test_a_file_here_and_on_a_store(here: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    data = (here / "tok.json").read_bytes()
    facts = {"source_sha256": hashlib.sha256(data).hexdigest()}
    own, said = load_tokenizer("tok.json")
    assert said == facts
    folder = f"memory://{uuid4().hex}"
    open_store(folder).put("a/tok.json", data)
    stored, said = load_tokenizer(f"{folder}/a/tok.json")
    assert said == facts
    assert stored.fingerprint() == own.fingerprint()
    open_store(folder).put("a/tok.json", data[:-9])
    with pytest.raises(BadTokenizer, match=f"^.*{folder}.*/a/tok.json"):
        load_tokenizer(f"{folder}/a/tok.json")
    with pytest.raises(BadTokenizer):
        load_tokenizer(f"{folder}/a")


def test_the_largest_id_of_a_tokenizer_is_that_of_a_dataset(here: Path) -> None:
    entries = Tokenizer.load("tok.json").ordinary_entries
    Tokenizer(entries, None, {"<far>": LARGEST_TOKEN_ID}, "gpt2").save("far.json")
    assert load_tokenizer("far.json")[0].max_token_id == LARGEST_TOKEN_ID
    with pytest.raises(BadTokenizer, match="<far>"):
        Tokenizer(entries, None, {"<far>": LARGEST_TOKEN_ID + 1}, "gpt2")
