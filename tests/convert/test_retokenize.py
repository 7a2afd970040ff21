"""A dataset that is retokenized from its IDs is the dataset that its text would have given."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chats import write_records
from runs import Inline, convert, options_of, sequences, tokenizer
from strategies import END

import flat_tokens
from bpe import Tokenizer
from convert.retokenize.__main__ import main
from flat_tokens.__main__ import main as flat_tokens_main


@pytest.fixture(autouse=True)
def files(folder: Path, random_texts: Callable[..., Iterator[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """texts.jsonl and new.json, a tokenizer with one special token more than tok.json."""
    monkeypatch.setattr("convert.retokenize.run.BATCH_TOKENS", 100)
    entries = {index: bytes([index]) for index in range(256)} | {256: b"th", 257: b"the", 258: b"an"}
    merges = [(b"t", b"h"), (b"th", b"e"), (b"a", b"n")]
    Tokenizer(entries, merges, {END: 300, "you'll": 301}, "cl100k").save("new.json")
    texts = [*random_texts(5, 60, 40), "", "the end", f"a{END}b", "x" * 700]
    random.Random(5).shuffle(texts)
    write_records("texts.jsonl", [{"text": text} for text in texts])


def new() -> Tokenizer:
    return Tokenizer.load("new.json")


def convert_texts(*texts: str, **more: Any) -> None:
    """Convert texts.jsonl, or these texts, to `old`."""
    if texts:
        write_records("texts.jsonl", [{"text": text} for text in texts])
    convert(Inline(), **{"inputs": ["texts.jsonl"], "output": "old", "validation_fraction": 0.2, **more})


def retokenize(*more: str, source: str = "old", tok: str = "new.json", output: str = "out") -> int:
    return main([source, "--tokenizer", tok, "--output", output, *more])


def rejected(capsys: pytest.CaptureFixture[str], code: int, *more: str, **names: str) -> str:
    capsys.readouterr()
    assert retokenize(*more, **names) == code
    error = capsys.readouterr().err
    assert error.startswith("tokenmill: error: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.slow
@pytest.mark.parametrize("special", ["encode", "text"])
@pytest.mark.parametrize("ends", [{}, {"append_token": END}, {"append_token": END, "prepend_token": END}])
def test_the_ids_are_those_of_the_text(special: str, ends: dict[str, str]) -> None:
    convert_texts(special_in_text=special, **ends)
    assert retokenize("--workers", "2") == 0
    back, front = ([300] * (name in ends) for name in ("append_token", "prepend_token"))
    expected = []
    for ids in sequences("old"):
        text = tokenizer().decode(ids[len(front) : len(ids) - len(back)])
        # "you'll" is a special token of the new tokenizer only, so it is ordinary text.
        expected.append([*front, *new().encode(text, {END} if special == "encode" else ()), *back])
    assert sequences("out") == expected
    flat_tokens.open("out", tokenizer=new())
    assert (options_of("out")["append_token"] or {}).get("id") == (300 if back else None)
    assert not list(Path().glob("*.partial"))


def test_a_special_token_as_text_in_one_document() -> None:
    texts = ["the end", f"a{END}b", "you'll", END]
    convert_texts(*texts, validation_fraction=0)
    assert retokenize() == 0
    assert sequences("out") == [new().encode(text, ()) for text in texts]


def test_added_tokens_that_are_not_special() -> None:
    """They are tokens of the text with both tokenizers, however special tokens were treated."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    for name, text in (("tok.json", "zzz"), ("new.json", "end")):
        root = json.loads(Path(name).read_bytes())
        root["added_tokens"].append({"id": len(root["model"]["vocab"]), "content": text, **flags})
        Path(name).write_text(json.dumps(root))
    convert_texts(text := f"zzz end {END} end", validation_fraction=0)
    assert sequences("old") == [Tokenizer.load("tok.json").encode(text, ["zzz"])]
    assert retokenize() == 0
    assert sequences("out") == [new().encode(text, ["end"])]


def test_a_loss_mask_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_records("texts.jsonl", [{"prompt": "xa", "completion": "b"}])
    convert_texts(prompt_field="prompt", completion_field="completion", validation_fraction=0)
    assert "error: old: has a loss mask" in rejected(capsys, 2)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([[104, 105], [116, 104]], "train[1]: "),  # "th" is one token
        ([[104, 105], [97], [0xC3]], "train[2]: "),  # no UTF-8
        ([[104, 9999]], "9999"),
    ],
)
def test_ids_that_are_no_text(ids: list[list[int]], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("in.npy", np.array([id_ for found in ids for id_ in found], np.uint32))
    np.save("in.offsets.npy", np.cumsum([0, *map(len, ids)]))
    assert flat_tokens_main(["import", "in.npy", "--from", "npy", "--output", "old"]) == 0
    assert "--from-tokenizer" in rejected(capsys, 2, tok="tok.json")
    capsys.readouterr()
    assert retokenize("--from-tokenizer", "new.json", tok="tok.json") in (2, 3)
    assert text in capsys.readouterr().err
    assert not Path("out").exists()


@pytest.mark.long
def test_another_tokenizer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    convert_texts(append_token=END)
    assert "error: new.json: " in rejected(capsys, 3, "--from-tokenizer", "new.json")
    assert retokenize("--from-tokenizer", "tok.json") == 0
    rejected(capsys, 6)
    root = json.loads(Path("new.json").read_bytes())
    root["added_tokens"] = [token for token in root["added_tokens"] if token["content"] != END]
    Path("new.json").write_text(json.dumps(root))
    assert "error: --append-token: " in rejected(capsys, 2, "--overwrite")
    assert retokenize("--overwrite", "--append-token", "none") == 0
    Path("old/tokenizer.json").write_text("{}")
    rejected(capsys, 3, "--overwrite", "--append-token", "none")
