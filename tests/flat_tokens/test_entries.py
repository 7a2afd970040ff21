"""The tokenizer.json of a dataset decodes to the same text as the tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bpe import train
from flat_tokens.errors import DatasetError
from flat_tokens.storage.entries import decode, load_entries

TEXT = "Größe café naïve — the mill\n  Ж 🙂\tdéjà vu, ÃÂ é ß and ĠĊ " * 9


@pytest.mark.parametrize("like", ["gpt-2", "o200k", "llama-2", "gemma-3", "deepseek-v3"])
def test_text_equals_the_tokenizers_decoding(like: str, tmp_path: Path) -> None:
    tokenizer = train([TEXT.encode()], vocab_size=700, like=like, special_tokens=["<s>"])
    tokenizer.save(tmp_path / "t.json")
    entries = load_entries(tmp_path / "t.json")
    for text in (TEXT, "the mill", " vu", "  two", "héé\x00\u2fff", "<s>é<s> ß", ""):
        ids = tokenizer.encode(text)
        assert decode(ids, entries) == tokenizer.decode(ids), text


@pytest.mark.parametrize(
    ("decoder", "text", "newline"),
    [
        ({"type": "Metaspace"}, "é", b"<0x0A>"),
        ({"type": "Metaspace", "prepend_scheme": "never"}, " é", b"<0x0A>"),
        ({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}, " é", b"\n"),
        ({"type": "BPEDecoder"}, "\u2581é", b"<0x0A>"),
        ({"type": "ByteLevel"}, "\u2581\ufffd", b"<0x0A>"),
        (None, "\u2581\ufffd", b"<0x0A>"),
    ],
)
def test_decoders_say_what_entries_are(decoder: Any, text: str, newline: bytes, tmp_path: Path) -> None:
    model = {"vocab": {"\u2581": 0, "é": 1, "<0x0A>": 2}}
    (tmp_path / "t.json").write_text(json.dumps({"model": model, "decoder": decoder}))
    entries = load_entries(tmp_path / "t.json")
    assert decode([0, 1], entries) == text
    assert entries[2] == newline


@pytest.mark.parametrize(
    "decoder", ["x", 5, [], {"type": "Sequence"}, {"type": "Sequence", "decoders": [None]}]
)
def test_an_invalid_decoder_is_refused(decoder: Any, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({"model": {"vocab": {"a": 0}}, "decoder": decoder}))
    with pytest.raises(DatasetError, match="tokenizer.json"):
        load_entries(tmp_path / "t.json")


def test_decoders_may_be_nested_as_deep_as_json(tmp_path: Path) -> None:
    decoder: Any = {"type": "ByteFallback"}
    for _ in range(400):
        decoder = {"type": "Sequence", "decoders": [decoder]}
    (tmp_path / "t.json").write_text(json.dumps({"model": {"vocab": {"<0x0A>": 0}}, "decoder": decoder}))
    assert load_entries(tmp_path / "t.json") == {0: b"\n"}


def test_entries_of_every_byte(tmp_path: Path) -> None:
    """All 256 single-byte entries in the printable alphabet, written here independently: 33 is U+0121."""
    printable_bytes = [*range(33, 127), *range(161, 173), *range(174, 256)]
    chars = {byte: chr(byte) for byte in printable_bytes}
    for byte in range(256):
        chars.setdefault(byte, chr(256 + len([b for b in range(byte) if b not in printable_bytes])))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"vocab": {chars[byte]: byte for byte in range(256)}}}))
    assert load_entries(path) == {byte: bytes([byte]) for byte in range(256)}
    assert decode([0xD0, 0x96, 0xFF, 300], load_entries(path)) == "Ж\ufffd<300>"
    with pytest.raises(DatasetError):
        load_entries(tmp_path / "nothing")
