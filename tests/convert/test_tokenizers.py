"""The tokenizer of a run: its place, its added tokens, and long documents with tokenizers of other families."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from limits import small
from runs import Inline, convert, error_of, sequences
from strategies import END
from text_vocabularies import WORDS, text_vocabulary

import flat_tokens
from bpe import Tokenizer
from tokenmill.stores import open_store


def test_a_tokenizer_on_a_store(here: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    store, data = open_store("memory://tokenizers"), (here / "tok.json").read_bytes()
    store.put("a/tok.json", data)
    convert(Inline(), tokenizer="memory://tokenizers/a/tok.json")
    flat_tokens.open("out", tokenizer="tok.json")
    for name, content in (("a/cut.json", data[:-9]), ("a/b/none", b"")):
        store.put(name, content)
        error = error_of(Inline(), tokenizer=f"memory://tokenizers/{name}", output="failed")
        assert error.exit_code == 2
        assert name in str(error)


@pytest.mark.parametrize("name", ["llama", "gemma", "metaspace", "mistral", "clip", "suffix", "prefix"])
def test_long_documents_of_other_families(name: str, folder: Path) -> None:
    """They failed, or had other IDs than short ones."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    (folder / "other.json").write_text(text_vocabulary(name), encoding="utf-8")
    rng = random.Random(name)
    texts = ["".join(rng.choices([*WORDS, "        ", "\n"], k=size)) for size in (3, 300, 1, 900)]
    texts += ["t" * 1001, "a" + " " * 900 + "b", "中" * 500]
    (folder / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    sizes = {
        "convert.encode.document_encoder.LONG_DOCUMENT_BYTES": 400,
        "convert.encode.document_encoder.PIECE_BYTES": 100,
    }
    with small(sizes):
        convert(Inline(), inputs=["in.jsonl"], tokenizer="other.json", validation_fraction=0)
    theirs = tokenizers.Tokenizer.from_file("other.json")
    assert sequences("out") == [theirs.encode(text, add_special_tokens=False).ids for text in texts]


@pytest.mark.parametrize("policy", [None, "text", "error", "encode"])
@pytest.mark.parametrize("name", ["in.jsonl", "in.txt"])
def test_added_tokens_that_are_not_special_are_tokens_everywhere(
    name: str, policy: str | None, folder: Path
) -> None:
    """They were ordinary text in records, where `tokenizers` has their IDs: runs of spaces, <think>."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    root = json.loads((folder / "tok.json").read_bytes())
    first = 1 + max(*root["model"]["vocab"].values(), *(token["id"] for token in root["added_tokens"]))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    for number, text in enumerate(["  ", "<think>"]):
        root["added_tokens"].append({"id": first + number, "content": text, **flags})
    (folder / "added.json").write_text(json.dumps(root))
    texts = ["a  b", "<think> the end", "no", "x <|im_start|>  y", "the " * 40 + "<think>  "]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / name).write_text(END.join(texts) if name == "in.txt" else lines)
    more: dict[str, Any] = {"special_in_text": policy, "on_error": "skip", "validation_fraction": 0.0}
    summary = convert(Inline(), inputs=[name], tokenizer="added.json", **more)
    is_text = policy == "text" or (policy is None and name == "in.jsonl")
    assert summary.intake.with_special == is_text
    theirs = tokenizers.Tokenizer.from_file("added.json")
    theirs.encode_special_tokens = is_text
    if policy == "error":
        del texts[3]
    expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    assert sequences("out") == expected
    assert first + 1 in expected[1]


def test_the_largest_id_of_a_dataset(folder: Path) -> None:
    entries = Tokenizer.load("tok.json").ordinary_entries
    Tokenizer(entries, None, {"<far>": 2**31 - 1}, "gpt2").save("far.json")
    (folder / "in.txt").write_text("a<far>b")
    convert(Inline(), inputs=["in.txt"], tokenizer="far.json", validation_fraction=0)
    assert 2**31 - 1 in sequences("out")[0]
