"""Vocabularies with an empty entry, no entries, or missing bytes, in calls other than encoding."""

from __future__ import annotations

import base64
import json
import pickle
import subprocess
import sys
from pathlib import Path

import tokenizers
from text_vocabularies import text_vocabulary

from bpe import Tokenizer
from bpe.formats import huggingface


def test_the_merge_of_two_nul_characters_is_applied() -> None:
    """The pair's key equalled the initial value of a filter, so texts were cut between the two."""
    vocab = {
        "<unk>": 0,
        **{f"<0x{byte:02X}>": byte + 1 for byte in range(256)},
        "\0": 257,
        "a": 258,
        "\0\0": 259,
    }
    model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    data = json.dumps({"model": model | {"vocab": vocab, "merges": [["\0", "\0"]]}, "version": "1.0"})
    assert Tokenizer.from_parts(huggingface.read(data.encode())).encode("a\0\0a") == [258, 259, 258]


def test_an_empty_vocabulary_has_no_highest_id_and_is_saved_as_json(tmp_path: Path) -> None:
    """`max_token_id` crashed, and the file said `"vocab":}`."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}))
    ours = Tokenizer.load(path)
    assert (ours.max_token_id, ours.vocab_size, ours.encode("ab")) == (-1, 0, [])
    ours.save(path)
    assert json.loads(path.read_text())["model"]["vocab"] == {}
    assert tokenizers.Tokenizer.from_file(str(path)).encode("ab").ids == []
    assert Tokenizer.load(path) == ours


def test_an_empty_entry_of_a_rank_file_decodes_to_nothing(tmp_path: Path) -> None:
    """Whisper's multilingual.tiktoken ends with one."""
    lines = [base64.b64encode(bytes([byte])) + b" %d" % byte for byte in range(256)] + [b"= 300", b"YWI= 256"]
    path, again = tmp_path / "some.tiktoken", tmp_path / "again.tiktoken"
    path.write_bytes(b"\n".join(lines))
    ours = Tokenizer.load(path, pattern="gpt2", special_tokens=["<s>"])
    assert (ours.max_token_id, ours.vocab_size, ours.vocab[300]) == (301, 259, b"")
    assert ours.encode("ab<s>") == [256, 301]
    assert (ours.token_to_id(b""), ours.id_to_token(300)) == (300, b"")
    assert ours.decode([97, 300, 256]) == "aab"
    assert pickle.loads(pickle.dumps(ours)).decode([300]) == ""
    ours.export_tiktoken(again)
    assert sorted(again.read_bytes().split(b"\n")) == sorted([*lines, b""])
    ours.save(tmp_path / "tokenizer.json")
    assert tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json")).decode([97, 300, 256]) == "aab"


def test_a_command_shows_the_missing_bytes_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(text_vocabulary("all-bytes-of-utf8"))
    command = [sys.executable, "-m", "tokenmill", "encode", "--tokenizer", str(tmp_path / "tokenizer.json")]
    done = subprocess.run(command, input="the", capture_output=True, text=True, check=True)
    assert done.stderr.startswith(f"tokenmill: warning: {tmp_path / 'tokenizer.json'}: ")
    assert "c0-c1 f5-ff" in done.stderr
    assert done.stderr.count("\n") == 1
