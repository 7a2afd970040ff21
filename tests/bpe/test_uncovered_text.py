"""Text that no match covers is an error that names its first byte, unless the file says Removed."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from splits import split

from bpe.errors import UncoveredText
from bpe.formats.huggingface import read
from bpe.pretoken_counts.counting import count_pretokens
from bpe.pretokenizer import Pretokenizer
from bpe.reference import pretokenize
from bpe.tokenizer import Tokenizer
from bpe.training import train

LETTERS = r"[a-zé]+| "
END = "<|endoftext|>"


@pytest.mark.parametrize(
    ("text", "place", "left_out"),
    [("1", 0, "1"), ("a1", 1, "1"), ("é é12 a", 5, "12"), ("ab\n", 2, "\n"), ("a" + "漢" * 90, 1, "漢" * 20)],
)
def test_the_first_byte_is_named(text: str, place: int, left_out: str) -> None:
    with pytest.raises(UncoveredText, match=f"text.*{place}") as raised:
        Pretokenizer.from_pattern(LETTERS).pretokens(text)
    assert (raised.value.place, raised.value.left_out, raised.value.exit_code) == (place, left_out, 3)
    assert "\n" not in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    with pytest.raises(ValueError, match="does not match all"):
        pretokenize(text, LETTERS)


def test_after_several_stages_the_offset_is_in_the_text() -> None:
    stages = (split(r"\d", "keep"), split("[é0-9]+"))
    with pytest.raises(UncoveredText, match="text.*byte 8"):
        Pretokenizer(stages).pretokens("é1é2éa")


def test_every_way_to_encode_names_the_place(listed: Any, tmp_path: Path) -> None:
    tokenizer: Tokenizer = listed(LETTERS, ["<s>", END])
    buffer = f"ab é{END}c é<s>é1 d{END}x".encode()
    offsets = np.array([0, 2, len(buffer)], np.uint64)
    place = buffer.index(b"1")
    for call, named in [
        (lambda: tokenizer.encode("é<s>a1"), "text: byte 6 "),
        (lambda: tokenizer.encode("é<s>", allowed_special=()), "text: byte 2 "),
        (lambda: tokenizer.encode_batch(["a", "é 1"]), r"texts\[1\]: byte 3 "),
        (lambda: tokenizer.encode_documents(buffer), f"document 1, buffer: byte {place} "),
        (
            lambda: tokenizer.encode_ragged(b"ab c1", np.array([0, 3, 5], np.uint64)),
            "document 1, buffer: byte 4 ",
        ),
        (lambda: tokenizer.encode_ragged(buffer, offsets), f"document 1, buffer: byte {place} "),
        (lambda: list(tokenizer.encode_iterable(["é", "<s", ">é a", "1"])), "text: byte 9 "),
        (lambda: list(tokenizer.encode_iterable(["<s>a" * 40_000, "1"])), "text: byte 160000 "),
    ]:
        with pytest.raises(UncoveredText, match=named):
            call()
    assert tokenizer.decode(tokenizer.encode(f"a é{END} b")) == f"a é{END} b"


def test_with_a_normalizer_the_offset_is_in_the_original_text(listed: Any) -> None:
    tokenizer: Tokenizer = listed(LETTERS, normalizer="NFC")
    for text, place in [
        ("e\u0301 1", 4),
        ("a1 e\u0301", 1),
        ("e\u0301e\u0301 e\u0301 1", 11),
        ("ab e\u0300", 3),
    ]:
        with pytest.raises(UncoveredText, match=f"text.*{place}"):
            tokenizer.encode(text)
    with pytest.raises(UncoveredText, match="text.*byte 16"):
        list(tokenizer.encode_iterable([END, "e\u0301", "1"]))


def test_counting_and_training_name_the_source(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(f"é a{END}é b{END}c 7 d")
    place = path.read_bytes().index(b"7")
    with pytest.raises(UncoveredText, match=rf"corpus\.txt.*{place}"):
        count_pretokens([path], [END], LETTERS)
    for block_bytes in (1, 7, 30, 1000):
        with pytest.raises(UncoveredText, match=f"byte .*{place}"):
            count_pretokens([path], [END], LETTERS, block_bytes=block_bytes)
    with pytest.raises(UncoveredText, match=f"byte .*{place}"):
        train([path], 300, [END], LETTERS)


def test_text_that_a_file_removes_is_dropped(listed: Any, huggingface_of: Any) -> None:
    """Text that the file declares isolated is kept."""
    for behavior, invert, kept in (("Removed", True, "ab c"), ("Isolated", False, "ab12 c!")):
        root = json.loads(listed().canonical_json)
        split = {"type": "Split", "pattern": {"Regex": "[a-z]+| "}, "behavior": behavior, "invert": invert}
        root["pre_tokenizer"]["use_regex"] = False
        root["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, root["pre_tokenizer"]]}
        tokenizer = Tokenizer.from_parts(read(json.dumps(root).encode()))
        ids = tokenizer.encode("ab12 c!")
        assert tokenizer.decode(ids) == kept
        assert ids == huggingface_of(root).encode("ab12 c!", add_special_tokens=False).ids
        again = Tokenizer.from_parts(read(tokenizer.canonical_json))
        assert again.encode("ab12 c!") == ids


def test_the_saved_file_loses_no_text(listed: Any, tmp_path: Path) -> None:
    tokenizer: Tokenizer = listed(LETTERS)
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    assert again == tokenizer
    assert again.encode("a é") == tokenizer.encode("a é")
    assert again.decode(again.encode("a é 1!")) == "a é 1!"
    with pytest.raises(UncoveredText):
        pickle.loads(pickle.dumps(tokenizer)).encode("a é 1!")
